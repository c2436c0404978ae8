CREATE STREAM trades (v BIGINT) WITH (past_max = '30 days')
