SELECT STRUCT(delay AS d).e FROM flights
