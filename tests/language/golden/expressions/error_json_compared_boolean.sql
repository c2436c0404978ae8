SELECT CAST(dest AS JSON) -> 'a' = true AS a FROM flights
