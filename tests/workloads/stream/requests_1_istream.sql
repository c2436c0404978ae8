-- The count as a stream, which has a new value each time it changes: section 2.2.
ISTREAM(
    SELECT COUNT(*)
    FROM Requests S [Range 1 Day Preceding]
    WHERE S.domain = 'stanford.edu'
)
