SELECT dest FROM flights WHERE dest LIKE 'J%' AND carrier NOT ILIKE '_a' AND dest LIKE '10!%' ESCAPE '!'
