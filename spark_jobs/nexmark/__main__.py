"""``python -m spark_jobs.nexmark``, and what spark-submit is given."""

from spark_jobs.nexmark.command import nexmark

if __name__ == "__main__":
    nexmark(prog_name="python -m spark_jobs.nexmark")
