#include "fedep/data/table/eicu.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/holdout.h"
#include "fedep/data/test_batches.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

const char* const kPatient =
    "patientunitstayid,gender,age,hospitalid,hospitaldischargestatus,admissionweight,uniquepid\n";
const char* const kApsHeader =
    "patientunitstayid,intubated,vent,dialysis,eyes,motor,verbal,urine,wbc,temperature,"
    "respiratoryrate,sodium,heartrate,meanbp,ph,hematocrit,creatinine,albumin,pao2,pco2,bun,"
    "glucose,"
    "bilirubin,fio2\n";
const char* const kAps = ",0,1,0,4,6,5,-1,10,36,20,140,80,90,-1,40,1,-1,-1,-1,20,100,-1,-1\n";

std::filesystem::path write(const std::string& name, const std::string& patients,
                            const std::string& scores) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("eicu_" + name);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "patient.csv") << kPatient << patients;
  std::ofstream(folder / "apacheApsVar.csv") << kApsHeader << scores;
  return folder;
}

TEST(Eicu, StaysAreJoinedWithTheirScores) {
  const auto folder = write("join", "1,Male,> 89,7,Alive,80,p1\n2,Female,50,7,Expired,,p2\n",
                            std::string("1") + kAps);
  const DelimitedTable table = eicu_table(folder);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][table.column("age")], "90");
  EXPECT_EQ(table.rows[0][table.column("sex")], "1");
  EXPECT_EQ(table.rows[0][table.column("gcs")], "15") << "4 + 6 + 5";
  EXPECT_EQ(table.rows[0][table.column("sodium")], "140");
  EXPECT_EQ(table.rows[1][table.column("sex")], "0");
  EXPECT_EQ(table.rows[1][table.column("gcs")], "") << "a stay without scores";
  EXPECT_EQ(table.rows[1][table.column("fio2")], "");
}

TEST(Eicu, AStayWithoutOutcomeIsSkipped) {
  const auto folder =
      write("outcome", "1,Male,60,7,Alive,80,p1\n2,Female,50,7,Expired,,p2\n3,Male,50,7,,,p3\n",
            std::string("1") + kAps);
  const auto data = open_eicu({.test_fraction = 0}, 1, folder);
  EXPECT_EQ(data->info().skipped_records, 1u);
  EXPECT_EQ(data->clients()[0].second, 2u);
}

TEST(Eicu, ABadFileIsRefused) {
  const std::string twice = std::string("1") + kAps + "1" + kAps;
  EXPECT_THROW(eicu_table(write("twice", "1,Male,60,7,Alive,80,p1\n", twice)), InputError);
  EXPECT_THROW(eicu_table(std::filesystem::path(testing::TempDir()) / "eicu_none"), InputError);
}

TEST(Eicu, TheDemoHasItsCounts) {
  const std::filesystem::path folder = real_data("eicu_demo/patient.csv.gz");
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  const DelimitedTable table = eicu_table(folder / "eicu_demo");
  EXPECT_EQ(table.rows.size(), 2520u);
  const auto data = open_eicu({.name = "eicu", .path = "eicu_demo"}, 1, folder);
  EXPECT_EQ(data->clients().size(), 186u);
  EXPECT_EQ(data->info().skipped_records, 28u) << "stays without an outcome";
  std::size_t train = 0, died = 0;
  for (std::size_t k = 0; k < 186; ++k) {
    const Batch batch = training_batch(*data, k);
    for (const float x : batch.dense) EXPECT_TRUE(std::isfinite(x) && std::abs(x) < 40.f) << x;
    died += std::size_t(std::accumulate(batch.labels.begin(), batch.labels.end(), 0));
    train += batch.size;
  }
  const Batch test = test_batch(*data);
  died += std::size_t(std::accumulate(test.labels.begin(), test.labels.end(), 0));
  EXPECT_EQ(train + data->test_size(), 2492u);
  EXPECT_EQ(died, 212u) << "hospitaldischargestatus Expired";
  EXPECT_NEAR(double(data->test_size()), 2492 * 0.2, 40);
}

TEST(Eicu, NoPatientOfAHospitalIsInTrainingAndTest) {
  const std::filesystem::path folder = real_data("eicu_demo/patient.csv.gz");
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  const DelimitedTable table = eicu_table(folder / "eicu_demo");
  std::map<std::string, std::vector<std::string>> patients;
  for (const auto& row : table.rows) {
    const bool has_outcome = !row[table.column("outcome")].empty();
    if (has_outcome)
      patients[row[table.column("hospital")]].push_back(row[table.column("patient")]);
  }
  std::size_t repeated = 0;
  for (const auto& [hospital, stays] : patients) {
    const std::vector<bool> held = held_out(hospital, numbered_groups(stays), 0.2);
    std::set<std::string> train, test;
    for (std::size_t i = 0; i < stays.size(); ++i) (held[i] ? test : train).insert(stays[i]);
    for (const std::string& patient : test) EXPECT_FALSE(train.contains(patient));
    repeated += stays.size() - train.size() - test.size();
  }
  EXPECT_GT(repeated, 100u) << "else this shows nothing";
}

}  // namespace
}  // namespace fedep
