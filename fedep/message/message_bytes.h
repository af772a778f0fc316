// A message as sections of a record: "<prefix>.family" (u8: 0 isotropic, 1 diagonal, 2 full),
// "<prefix>.eta" (f32) and "<prefix>.lambda" (f32: one number if isotropic, as many as eta if diagonal,
// the lower triangle row by row if full). The way there and back is exact.
//
//   std::vector<SectionView> sections;
//   append_sections(sections, "factor", factor);        // factor must outlive sections
//   write_record(sections, sink);
//   ...
//   const Message factor = message_from(record, "factor");
#pragma once

#include <string_view>
#include <vector>

#include "fedep/message/gaussian.h"
#include "fedep/message/record.h"

namespace fedep {

void append_sections(std::vector<SectionView>& sections, std::string_view prefix,
                     const Message& message);
// The sections would look at a message that is gone.
void append_sections(std::vector<SectionView>& sections, std::string_view prefix,
                     const Message&& message) = delete;

// The first of these sections alone.
void append_family(std::vector<SectionView>& sections, std::string_view prefix, Family family);
Family family_from(const Record& record, std::string_view prefix);

// Throw InputError if a section is missing, of another type, or of a size that does not fit.
Message message_from(const Record& record, std::string_view prefix);
// As message_from without copying: the record's sections are left empty.
Message extract_message(Record& record, std::string_view prefix);

}  // namespace fedep
