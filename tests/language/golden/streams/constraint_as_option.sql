CREATE STREAM legs (a INTEGER) WITH (constraints = 'UNIQUE (a)')
