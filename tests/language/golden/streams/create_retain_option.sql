CREATE STREAM s (a INTEGER) WITH (retain = '90 minutes')
