#include "fedep/data/image/pca.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <system_error>

#include <cblas-openblas.h>
#include <fmt/format.h>

#include "fedep/data/data_file.h"
#include "fedep/message/check.h"
#include "fedep/message/record.h"

// LAPACK, which OpenBLAS brings without a header: the largest eigenpairs of a symmetric matrix,
// without the others. The last three arguments are the lengths of the first three, as Fortran
// passes them.
extern "C" void dsyevr_(const char* job, const char* range, const char* triangle, const int* n,
                        double* a, const int* lda, const double* low, const double* high,
                        const int* first, const int* last, const double* tolerance, int* found,
                        double* values, double* vectors, const int* ldz, int* support, double* work,
                        const int* work_size, int* integer_work, const int* integer_work_size,
                        int* info, std::size_t, std::size_t, std::size_t);

namespace fedep {
namespace {

constexpr std::size_t kFitBlock = 500;  // rows whose products are summed in float before double
constexpr std::size_t kPanel = 16;      // components side by side in one vector
constexpr std::size_t kRows = 10;       // rows that share a pass over a panel

typedef float Panel __attribute__((vector_size(kPanel * sizeof(float))));

// out[r][0..16) = sum_k x[r][k] * w[k][0..16), for R rows at once. One accumulator per output, in
// order of k: neither R nor the instruction set changes a bit.
template <std::size_t R>
[[gnu::always_inline]] inline void multiply_panel(const float* x, std::size_t features,
                                                  const float* w, float* out) {
  Panel sums[R] = {};
  for (std::size_t k = 0; k < features; ++k) {
    Panel weights;
    std::memcpy(&weights, w + k * kPanel, sizeof weights);
    for (std::size_t r = 0; r < R; ++r) sums[r] += x[r * features + k] * weights;
  }
  std::memcpy(out, sums, sizeof sums);
}

// The same code for three instruction sets. (target_clones would choose before main, where the
// thread sanitizer crashes.)
using Multiply = void(const float* x, std::size_t features, const float* w, float* out);

template <std::size_t R>
[[gnu::target("avx512f")]] void multiply_avx512(const float* x, std::size_t features,
                                                const float* w, float* out) {
  multiply_panel<R>(x, features, w, out);
}

template <std::size_t R>
[[gnu::target("avx2")]] void multiply_avx2(const float* x, std::size_t features, const float* w,
                                           float* out) {
  multiply_panel<R>(x, features, w, out);
}

template <std::size_t R>
void multiply_baseline(const float* x, std::size_t features, const float* w, float* out) {
  multiply_panel<R>(x, features, w, out);
}

// The best this CPU has.
template <std::size_t R>
Multiply* choose_multiply() {
  if (__builtin_cpu_supports("avx512f")) return multiply_avx512<R>;
  if (__builtin_cpu_supports("avx2")) return multiply_avx2<R>;
  return multiply_baseline<R>;
}

void add_block(const std::vector<float>& block, std::size_t rows, std::size_t features,
               std::vector<float>& products, std::vector<double>& second,
               std::vector<double>& first) {
  const int n = int(features);
  cblas_ssyrk(CblasColMajor, CblasLower, CblasNoTrans, n, int(rows), 1.0f, block.data(), n, 0.0f,
              products.data(), n);
  for (std::size_t j = 0; j < features; ++j) {
    for (std::size_t i = j; i < features; ++i) {
      second[j * features + i] += double(products[j * features + i]);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = 0; i < features; ++i) first[i] += double(block[r * features + i]);
  }
}

struct Eigenpairs {
  std::vector<double> values;   // ascending
  std::vector<double> vectors;  // one after another
};

// Of a symmetric matrix given by its lower triangle, which is overwritten.
Eigenpairs largest_eigenpairs(std::vector<double>& matrix, std::size_t size, std::size_t count) {
  const int n = int(size);
  const int first = n - int(count) + 1;  // LAPACK counts from 1
  const double unused = 0;
  const double tolerance = 0;  // as exact as can be
  int found = 0;
  int info = 0;
  Eigenpairs pairs{.values = std::vector<double>(size),
                   .vectors = std::vector<double>(size * count)};
  std::vector<int> support(2 * size);
  std::vector<double> work(1);
  std::vector<int> integer_work(1);
  int work_size = -1;  // the first call only asks how much
  int integer_work_size = -1;
  for (int call = 0; call < 2 && info == 0; ++call) {
    dsyevr_("V", "I", "L", &n, matrix.data(), &n, &unused, &unused, &first, &n, &tolerance, &found,
            pairs.values.data(), pairs.vectors.data(), &n, support.data(), work.data(), &work_size,
            integer_work.data(), &integer_work_size, &info, 1, 1, 1);
    if (call == 0) {
      work_size = int(work[0]);
      integer_work_size = integer_work[0];
      work.resize(std::size_t(work_size));
      integer_work.resize(std::size_t(integer_work_size));
    }
  }
  if (info != 0 || found != int(count)) {
    throw InputError("fit_pca: rows must have a finite covariance, but it has no eigenvectors");
  }
  return pairs;
}

}  // namespace

Pca fit_pca(std::size_t rows, std::size_t features, std::size_t components,
            const RowReader& source) {
  check_in("fit_pca", "rows", double(rows), 1, 1e9);
  check_in("fit_pca", "features", double(features), 1, 20000);
  check_in("fit_pca", "components", double(components), 1, double(features));
  std::vector<double> second(features * features);  // column after column, lower triangle
  std::vector<double> first(features);
  std::vector<float> block(kFitBlock * features);
  std::vector<float> products(features * features);
  for (std::size_t begin = 0; begin < rows; begin += kFitBlock) {
    const std::size_t count = std::min(kFitBlock, rows - begin);
    source(begin, std::span(block).first(count * features));
    add_block(block, count, features, products, second, first);
  }
  for (double& sum : first) sum /= double(rows);
  for (std::size_t j = 0; j < features; ++j) {
    for (std::size_t i = j; i < features; ++i) {
      double& entry = second[j * features + i];
      entry = entry / double(rows) - first[i] * first[j];
    }
  }

  const Eigenpairs pairs = largest_eigenpairs(second, features, components);
  Pca pca{.features = features,
          .components = components,
          .mean = std::vector<float>(first.begin(), first.end()),
          .basis = std::vector<float>(features * components),
          .variances = std::vector<float>(components)};
  for (std::size_t c = 0; c < components; ++c) {
    const std::size_t place = components - 1 - c;  // eigenvalues ascend
    const double* const vector = pairs.vectors.data() + place * features;
    const double* const top = std::max_element(
        vector, vector + features, [](double a, double b) { return std::fabs(a) < std::fabs(b); });
    const double sign = *top < 0 ? -1.0 : 1.0;
    for (std::size_t i = 0; i < features; ++i) {
      pca.basis[i * components + c] = float(sign * vector[i]);
    }
    pca.variances[c] = float(std::max(pairs.values[place], 0.0));
  }
  return pca;
}

PcaProjection::PcaProjection(const Pca& pca)
    : features_(pca.features),
      components_(pca.components),
      panels_((pca.components + kPanel - 1) / kPanel * pca.features * kPanel),
      offset_(pca.components) {
  check_same_size("PcaProjection", "basis", features_ * components_, pca.basis.size());
  check_same_size("PcaProjection", "mean", features_, pca.mean.size());
  for (std::size_t c = 0; c < components_; ++c) {
    double offset = 0;
    for (std::size_t k = 0; k < features_; ++k) {
      const float weight = pca.basis[k * components_ + c];
      panels_[(c / kPanel * features_ + k) * kPanel + c % kPanel] = weight;
      offset += double(pca.mean[k]) * double(weight);
    }
    offset_[c] = float(offset);
  }
}

PcaProjection::PcaProjection(std::size_t features, std::vector<float> panels,
                             std::vector<float> offset)
    : features_(features),
      components_(offset.size()),
      panels_(std::move(panels)),
      offset_(std::move(offset)) {
  check_same_size("PcaProjection", "panels",
                  (components_ + kPanel - 1) / kPanel * features_ * kPanel, panels_.size());
}

void PcaProjection::operator()(std::span<const float> rows, std::span<float> out) const {
  const std::size_t count = rows.size() / features_;
  check_same_size("PcaProjection", "rows", count * features_, rows.size());
  check_same_size("PcaProjection", "output", count * components_, out.size());
  static Multiply* const multiply_ten = choose_multiply<kRows>();
  static Multiply* const multiply_one = choose_multiply<1>();
  float sums[kRows * kPanel];
  for (std::size_t r = 0; r < count;) {
    const std::size_t taken = count - r >= kRows ? kRows : 1;
    for (std::size_t c = 0; c < components_; c += kPanel) {
      const float* const panel = panels_.data() + c * features_;
      const float* const x = rows.data() + r * features_;
      (taken == kRows ? multiply_ten : multiply_one)(x, features_, panel, sums);
      const std::size_t width = std::min(kPanel, components_ - c);
      for (std::size_t i = 0; i < taken; ++i) {
        float* const to = out.data() + (r + i) * components_ + c;
        for (std::size_t j = 0; j < width; ++j) to[j] = sums[i * kPanel + j] - offset_[c + j];
      }
    }
    r += taken;
  }
}

void save_pca(const Pca& pca, const std::filesystem::path& path) {
  const std::vector<SectionView> sections{{"mean", std::span<const float>(pca.mean)},
                                          {"basis", std::span<const float>(pca.basis)},
                                          {"variances", std::span<const float>(pca.variances)}};
  std::filesystem::path part = path;
  part += fmt::format(".{}.part", getpid());  // several processes may fit at once
  std::ofstream out(part, std::ios::binary);
  write_record(sections, [&](std::span<const std::byte> bytes) {
    out.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  });
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(part, path, error);
  if (!out || error) {
    std::filesystem::remove(part, error);
    throw RunError(fmt::format("save_pca: cannot write {}", path.string()));
  }
}

Pca load_pca(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> bytes = read_data_file("pca", path);
  try {
    Record record = read_record(std::as_bytes(std::span(bytes)));
    Pca pca{.mean = record.extract<float>("mean"),
            .basis = record.extract<float>("basis"),
            .variances = record.extract<float>("variances")};
    pca.features = pca.mean.size();
    pca.components = pca.variances.size();
    check_same_size("pca", "basis", pca.features * pca.components, pca.basis.size());
    return pca;
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace fedep
