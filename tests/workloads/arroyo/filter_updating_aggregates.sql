-- As published.
SELECT * FROM (
    SELECT COUNT(DISTINCT subtask_index) AS subtasks FROM impulse
)
WHERE subtasks >= 1
