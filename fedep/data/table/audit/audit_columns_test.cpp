#include "fedep/data/table/audit/audit_columns.h"

#include <gtest/gtest.h>

namespace fedep {
namespace {

TEST(IsNameOfIds, KnowsHowIdsAreCalled) {
  for (const char* name : {"id", "ID", "mrn", "patient_id", "PatientID", "stayid",
                           "patientunitstayid", "hadm_id", "patient", "record no", "Unnamed: 0"}) {
    EXPECT_TRUE(is_name_of_ids(name)) << name;
  }
  for (const char* name : {"", "age", "patient_age", "stay", "length_of_stay", "bid", "fluid",
                           "steroid", "acid", "smoker no", "shock_index", "tsh", "17"}) {
    EXPECT_FALSE(is_name_of_ids(name)) << name;
  }
}

}  // namespace
}  // namespace fedep
