"""What `make quick` leaves out."""

# These start browsers, servers, clusters or other processes, build the site, or run long.
INTEGRATION = (
    "benchmarks",
    "conformance",
    "distributed",
    "experiments",
    "files/test_files_full_disk.py",
    "frontiers/test_kills.py",
    "frontiers/test_parallel.py",
    "frontiers/test_store.py",
    "plan/test_plan_file_damage.py",
    "plan/test_plan_fuzz.py",
    "report/test_page",
    "runtime/test_runtime_processes.py",
    "runtime/test_runtime_redis.py",
    "runtime/test_scenes_example.py",
    "runtime/test_spam_example.py",
    "serve/test_form.py",
    "serve/test_serve_examples.py",
    "serve/test_serve_process.py",
    "serve/test_serve_stop.py",
    "serve/test_serve_workers.py",
    "test_documentation.py",
    "test_release.py",
    "test_triage_example.py",
)
