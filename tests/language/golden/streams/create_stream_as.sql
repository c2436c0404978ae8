CREATE STREAM long AS SELECT carrier, twice FROM late WHERE twice > 60
