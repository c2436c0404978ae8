SELECT a.dest FROM flights a JOIN flights b ON a.carrier = b.carrier AND a.delay < b.delay + 3
