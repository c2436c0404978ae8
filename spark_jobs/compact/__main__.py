"""``python -m spark_jobs.compact``, and what spark-submit is given."""

from spark_jobs.compact.command import compact

if __name__ == "__main__":
    compact(prog_name="python -m spark_jobs.compact")
