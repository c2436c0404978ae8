-- As published; the function is in Rust there, and in Python here.
SELECT double_negative(counter) AS counter FROM impulse
