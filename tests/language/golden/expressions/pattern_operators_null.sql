SELECT dest ~ NULL, dest !~* NULL FROM flights WHERE dest !~ NULL
