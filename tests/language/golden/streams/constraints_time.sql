CREATE STREAM legs (code STRING, constraint STRING, at TIMESTAMP, CONSTRAINT ordered (at), CONSTRAINT REFERENCES (code) TO airports (code) WITHIN 5 SECONDS) WITH (timestamp = 'at')
