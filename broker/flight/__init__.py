"""Arrow Flight SQL: clients of ADBC and JDBC get answers as columns, by what answers PostgreSQL's."""
