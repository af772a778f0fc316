// Reading the files of a data set: what is missing or too short is refused in one line that says
// what to do.
//
//   const auto bytes = read_data_file("cifar100", folder / "train.bin");
//   check_data_size("cifar100", folder / "train.bin", bytes.size(), 50000 * 3074);
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fedep {

// "cifar100: DIR/train.bin is missing; …", with the ways to bring or name the data.
std::string missing_data(std::string_view dataset, const std::filesystem::path& path);
void check_data_exists(std::string_view dataset, const std::filesystem::path& path);

// The whole file. Throws InputError if it is missing, RunError if it cannot be read.
std::vector<std::uint8_t> read_data_file(std::string_view dataset,
                                         const std::filesystem::path& path);
// As above; a file that gzip packed is unpacked on the way.
std::vector<std::uint8_t> read_gzip_file(std::string_view dataset,
                                         const std::filesystem::path& path);
std::string read_data_text(std::string_view dataset, const std::filesystem::path& path);

// Throws InputError unless both are equal.
void check_data_size(std::string_view dataset, const std::filesystem::path& path,
                     std::uint64_t came, std::uint64_t expected);

// Little-endian numbers, from bytes of which there must be enough.
std::uint16_t little_u16(const std::uint8_t* bytes);
std::int32_t little_i32(const std::uint8_t* bytes);

}  // namespace fedep
