// Arrays as files and messages hold them: of one of five element types, known at run time.
//
//   const Array values = std::vector<float>{1, 2, 3};
//   sink(bytes_of(view(values)));  // as they lie in memory
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace fedep {

// Owned, or looked at. The order of the alternatives is that of the byte format (record.h).
using Array = std::variant<std::vector<std::uint8_t>, std::vector<std::int32_t>,
                           std::vector<std::int64_t>, std::vector<float>, std::vector<double>>;
using ArrayView =
    std::variant<std::span<const std::uint8_t>, std::span<const std::int32_t>,
                 std::span<const std::int64_t>, std::span<const float>, std::span<const double>>;

template <class T>
concept ArrayElement = std::same_as<T, std::uint8_t> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, float> || std::same_as<T, double>;

ArrayView view(const Array& array);
std::span<const std::byte> bytes_of(const ArrayView& array);
// Place of the first NaN or infinity; the array's size if there is none, as in every array of
// integers.
std::size_t first_not_finite(const ArrayView& array);

}  // namespace fedep
