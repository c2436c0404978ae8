CREATE QUERY copied AS INSERT INTO weather (ts, dest) SELECT ts, carrier FROM late
