SELECT flight, day, NULL AS nothing FROM flights UNION ALL SELECT delay, '2013-01-01', 'x' FROM flights UNION ALL SELECT price, ts, NULL FROM flights
