CREATE TABLE fares (carrier STRING, dest STRING, fare DOUBLE, since TIMESTAMP NOT NULL, PRIMARY KEY (carrier, dest))
NON RETROACTIVE WITH (timestamp = 'since', lateness = '5 seconds')
