SELECT dest LIKE ANY ('J%', '%K'), carrier NOT ILIKE ALL (ARRAY['a%', '%a']) FROM flights
