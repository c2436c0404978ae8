-- the late ones
SELECT /* all /* nested */ */ * FROM flights -- here
WHERE delay > 60;
