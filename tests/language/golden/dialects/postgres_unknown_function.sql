SELECT foo(dest) FROM flights
