SELECT 1 FROM flights WHERE dest SIMILAR TO carrier
