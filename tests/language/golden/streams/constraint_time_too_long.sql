CREATE STREAM legs (code STRING, at TIMESTAMP, CONSTRAINT REFERENCES (code) TO airports (code) WITHIN 9999 DAYS) WITH (timestamp = 'at')
