CREATE QUERY wbpy4mk74giav5jp6e2f7uuvyk AS SELECT carrier FROM flights
