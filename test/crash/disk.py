"""What a disk holds after a power cut: a model that is told, call by call, what a program did, and forgets what the
program never asked to be brought to the disk.

    disk = Disk(folder)                       # what lies there now is on the disk
    for line in record: disk.apply(line)      # crash_at.cpp writes them
    disk.cut(random.Random(7), "any").write_to(other_folder)

It promises as little as POSIX does. A file's bytes are safe once the file was synced, a name (made, renamed or
removed) once its folder was: syncing a file does not save its name. Until then every write and every name may be
kept or lost, each by itself and in any order; a write may be torn, and where it is lost its bytes may be zeros. Only a
rename within a folder is one thing.
"""

from pathlib import Path

# What becomes of changes that were not synced.
CUTS = {
    "nothing": "none of them is kept",
    "everything": "all are kept, as after a kill",
    "names": "names are kept and bytes are lost",
    "zeros": "names and sizes are kept, and bytes are zeros",
    "bytes": "bytes are kept and names are lost",
    "ordered": "the first so many are kept, the last of them torn",
    "any": "each is kept or lost by itself, or torn",
}


class File:
    def __init__(self, content=b""):
        self.safe = self.now = content
        self.changes = []  # since the last sync: (its number, place, bytes), or (number, size, None) of a truncation

    def sync(self):
        self.safe, self.changes = self.now, []


class Folder:
    def __init__(self):
        self.safe, self.now = {}, {}
        self.changes = []  # since the last sync: (its number, {name: file or None})

    def change(self, number, names):
        self.changes.append((number, names))
        self.now = with_names(self.now, names)

    def sync(self):
        self.safe, self.changes = dict(self.now), []


def with_names(there, names):
    return {name: node for name, node in {**there, **names}.items() if node is not None}


def changed(content, place, data):
    """Bytes after a write, or after a truncation to a size."""
    if data is None:
        return content[:place].ljust(place, b"\0")
    return content[:place].ljust(place, b"\0") + data + content[place + len(data) :]


class Disk:
    def __init__(self, folder):
        self.root_path = Path(folder)
        self.root = read_tree(self.root_path)
        self.opened = {}
        self.calls = 0

    def restart(self):
        """Another process begins, and numbers its files anew."""
        self.opened = {}

    def find(self, path):
        node = self.root
        for name in Path(path).relative_to(self.root_path).parts:
            node = node.now[name]
        return node

    def name(self, path, node):
        """Gives a file this name, or takes the name away."""
        path = Path(path)
        self.find(path.parent).change(self.calls, {path.name: node})

    def apply(self, line):
        call, *rest = line.rstrip("\n").split("\t")
        self.calls += 1
        getattr(self, "do_" + call)(*rest)

    def do_open(self, number, how, path):
        if how == "created":
            self.name(path, File())
        self.opened[number] = self.find(path)
        if how == "truncated":
            self.do_truncate(number, "0")

    def do_write(self, number, place, data):
        self.change(number, int(place), bytes.fromhex(data))

    def do_truncate(self, number, size):
        self.change(number, int(size), None)

    def change(self, number, place, data):
        file = self.opened[number]
        if data is None and place == len(file.now):
            return
        file.changes.append((self.calls, place, data))
        file.now = changed(file.now, place, data)

    def do_sync(self, number):
        self.opened[number].sync()

    def do_rename(self, source, target):
        source, target = Path(source), Path(target)
        folder = self.find(source.parent)
        assert source.parent == target.parent, "only renames within a folder are one thing"
        folder.change(self.calls, {source.name: None, target.name: folder.now[source.name]})

    def do_unlink(self, path):
        self.name(path, None)

    def do_mkdir(self, path):
        self.name(path, Folder())

    def cut(self, draw, how):
        return Survivors(self.root, self.calls, draw, how)


class Survivors:
    """The disk after a cut, as nested dictionaries of names and bytes."""

    def __init__(self, root, calls, draw, how):
        self.draw, self.how = draw, how
        self.chance = draw.choice((0.2, 0.5, 0.8))
        numbers = sorted(pending(root))
        # The number of the last change that an ordered disk kept.
        self.last = draw.choice(numbers) if numbers else calls
        self.tree = self.folder(root)

    def is_kept(self, number, is_name):
        if self.how == "any":
            return self.draw.random() < self.chance
        if self.how == "ordered":
            return number <= self.last
        return self.how == "everything" or self.how in (("names", "zeros") if is_name else ("bytes",))

    def folder(self, folder):
        names = folder.safe
        for number, change in folder.changes:
            if self.is_kept(number, True):
                names = with_names(names, change)
        return {name: self.folder(n) if isinstance(n, Folder) else self.file(n) for name, n in sorted(names.items())}

    def file(self, file):
        content = file.safe
        for number, place, data in file.changes:
            if self.is_kept(number, False):
                content = changed(content, place, data if data is None else self.torn(number, data))
            elif data is not None and self.has_zeros():
                content = changed(content, place, bytes(len(data)))
        return content

    def torn(self, number, data):
        is_torn = self.how == "any" and self.draw.random() < 0.3 or self.how == "ordered" and number == self.last
        if not is_torn:
            return data
        end = self.draw.randrange(len(data) + 1)
        return data[:end] + (bytes(len(data) - end) if self.draw.random() < 0.5 else b"")

    def has_zeros(self):
        return self.how == "zeros" or self.how == "any" and self.draw.random() < 0.5

    def write_to(self, folder):
        write_tree(self.tree, Path(folder))


def pending(folder):
    """Numbers of the changes that are not safe."""
    yield from (number for number, _ in folder.changes)
    for node in folder.now.values():
        if isinstance(node, Folder):
            yield from pending(node)
        else:
            yield from (change[0] for change in node.changes)


def read_tree(path):
    folder = Folder()
    for entry in path.iterdir():
        folder.now[entry.name] = read_tree(entry) if entry.is_dir() else File(entry.read_bytes())
    folder.sync()
    return folder


def write_tree(tree, path):
    path.mkdir(parents=True, exist_ok=True)
    for name, content in tree.items():
        if isinstance(content, dict):
            write_tree(content, path / name)
        else:
            (path / name).write_bytes(content)
