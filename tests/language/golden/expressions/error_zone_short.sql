SELECT ts AT TIME ZONE 'Foo' FROM flights
