CREATE TABLE carriers AS SELECT carrier, MAX(n) AS n FROM carriers GROUP BY carrier
