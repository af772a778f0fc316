// Terms that a recipe asks for beside a table's columns: interactions, indicators of missing values, and
// what categories are compared with.
//
//   add_terms(settings, spec);                                  // before the table is read
//   agree_on_terms(table, clients, settings.scale, features);   // once its columns have a scale
//
// Clients report what they report of columns: counts and sums over their training rows.
#pragma once

#include <map>
#include <string>

#include "fedep/config/recipe.h"
#include "fedep/data/table/client_tables.h"
#include "fedep/data/table/packed_table.h"
#include "fedep/data/table/table_features.h"
#include "fedep/data/table/table_spec.h"

namespace fedep {

// data.interactions and data.missing_indicators, whose * stays as it is. Throws InputError, with the
// nearest name, for a column that is no feature, and for a term that is there twice.
void add_terms(const DataSettings& settings, TableSpec& spec);

// data.reference, by column. Throws InputError for what is no category, or there twice.
std::map<std::string, std::string> chosen_references(const DataSettings& settings,
                                                     const TableSpec& spec);
// Throws InputError, with the nearest, for a value that no client has in its training rows.
void check_reference(const std::string& column, const std::string& value,
                     const std::map<std::string, std::size_t>& rows_by_value);

// Scales of indicators and products. A * becomes the columns that miss a value in some training row. Of a
// table whose numbers are scaled.
void agree_on_terms(const PackedTable& table, const ClientTables& clients, ColumnScaling scaling,
                    TableFeatures& features);

}  // namespace fedep
