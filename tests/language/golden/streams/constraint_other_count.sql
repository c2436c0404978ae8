CREATE STREAM legs (code STRING, at TIMESTAMP, CONSTRAINT MANY ONE (code) TO airports (city, runways)) WITH (timestamp = 'at')
