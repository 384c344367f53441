"""Which tests `make test` leaves to `make test-wide`, and which files it begins with.

`make test` takes minutes. It leaves out:

- what is in WIDE: tests that take long, if `make test` has a similar one (the same property on
  another cluster, for another value, with another MPI library), or if few changes can break what
  they test,
- of a test that starts MPI processes for several values, all but the first one,
- of a property test, three of four examples (the profile `few` in `conftest.py`). `make test-wide`
  runs all of them.

`make check-all` runs all tests, the `slow` ones, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

#: Files of tests that take 15 s or more, the longest first; any order is right.
LONGEST = (
    "mpi/test_conformance",
    "faults/test_faults",
    "launch/test_slurm",
    "mpi/test_programs",
    "mpi/test_adaptive",
    "mpi/test_patterns",
    "mpi/test_scratch",
    "mpi/test_persistent",
    "mpi/test_schedules",
    "mpi/test_events",
    "mpi/test_inspected_trees",
    "mpi/test_groups",
    "mpi/test_compositions",
    "mpi/test_data",
    "mpi/test_configured_trees",
    "mpi/test_threads",
    "mpi/test_session_driver",
    "mpi/test_mpi4py",
    "mpi/test_fortran",
    "mpi/test_rank_order",
    "mpi/test_parameters",
    "mpi/test_learned_library",
    "mpi/test_openmpi",
    "docs/test_add_a_collective",
)

#: By file: names of tests with their parameters, all of them unless told; `*` is any text.
WIDE: dict[str, tuple[str, ...]] = {
    "cli/test_arrivals_options": (
        "test_tables_are_made_and_compared_under_imbalance_and_under_a_replay",
    ),
    "cli/test_bench": (
        "test_json_pairs_native_and_tuned",
        "test_what_intercepting_costs_is_measured_for_every_collective",
    ),
    "cli/test_budget": (
        "test_a_run_within_a_budget_is_killed_and_goes_on_with_what_is_left",
        "test_auto_is_taken_from_the_log_whatever_else_is_left_out",
    ),
    "cli/test_compare": (
        "test_configured_trees_are_candidates_of_compare",
        "test_candidates_are_timed_in_turn",
    ),
    "cli/test_diff": (
        "test_without_logs_only_the_choices_are_compared",
        "test_one_log_is_enough_for_one_direction",
        "test_a_log_alone_chooses_what_was_fastest",
        "test_a_log_without_its_topology_asks_for_it",
        "test_other_topologies_are_compared_only_if_asked_for",
        "test_a_damaged_table_is_reported_with_its_file",
        "test_a_folder_with_neither_and_a_file_that_is_not_there_are_reported",
        "test_a_tuning_loses_nothing_against_itself",
        "test_choosing_native_is_as_much_slower_as_the_log_says",
    ),
    "cli/test_doctor": (
        "test_what_is_broken_in_a_host_is_found[folder not shared]",
        "test_what_is_broken_in_a_host_is_found[no answer]",
    ),
    "cli/test_record": (
        "test_the_cost_of_recording_is_measured",
        "test_times_of_messages_are_measured",
    ),
    "cli/test_reconfigure": ("test_damaged_logs_are_gone_on_with_or_refused[1200]",),
    "cli/test_reconfigure_jobs": (
        "test_setups_are_timed_in_turn",
        "test_barriers_have_no_size_so_each_tree_has_a_job",
        "test_events_show_what_nodes_take_and_where_two_trees_differ",
        "test_a_search_has_its_log_its_tree_and_its_race_and_resumes",
    ),
    "cli/test_tree": (
        "test_hosts_with_long_names_have_nodes_that_can_be_read[*W]",
        "test_hosts_with_long_names_have_nodes_that_can_be_read[*Blade]",
    ),
    "cli/test_tune": (
        "test_a_log_gives_the_same_bytes_twice",
    ),
    "cli/test_tune_communicators": (
        "test_groups_that_share_nothing_are_timed_at_once",
        "test_the_library_serves_each_communicator_as_decided",
    ),
    "cli/test_tune_cut_off": (
        "test_a_folder_that_needs_no_change_keeps_its_times",
        "test_a_folder_that_is_written_half_cannot_be_built_and_is_mended",
    ),
    "cli/test_tune_log": (
        "test_a_damaged_header_is_reported_with_file_and_line[changes1*]",
        "test_a_damaged_header_is_reported_with_file_and_line[changes2*]",
    ),
    "cli/test_tune_trees": (
        "test_trees_compete_with_native_and_the_folder_has_their_files",
    ),
    "cli/test_validate": (
        "test_decisions_are_measured_again_for_real",
    ),
    "cli/test_verify": (
        "test_each_routine_is_in_its_file_and_no_other",
        "test_verify_reads_no_code_but_names_and_includes",
    ),
    "cli/test_verify_damage": (
        "test_*[fig-3-2-alltoall_aapc_barrier*]",
        "test_*[fig-3-2-alltoall_aapc_dummy]",
        "test_*[fig-3-2-alltoall_aapc_none]",
        "test_*[fig-3-2-alltoall_aapc_receiver_*]",
        "test_*[fig-3-2-alltoall_aapc_sender*]",
        "test_*[capacity 2-alltoall_aapc_sender_partial]",
        "test_*[groups-alltoall_aapc_receiver]",
        "test_*[slots-alltoall_aapc_sender]",
        "test_every_other_declaration_is_seen[slots-bcast_topology_kary]",
        "test_every_other_declaration_is_seen[*-*_topology_binary]",
        "test_every_changed_number_is_seen[*-*_topology_binary]",
        "test_every_other_declaration_is_seen[capacity 2-*]",
        "test_every_changed_number_is_seen[capacity 2-*]",
        "test_every_changed_number_is_seen[slots-bcast_topology_kary]",
        "test_every_change_of_the_cluster_is_seen[fig-3-2]",
        "test_every_change_of_the_cluster_is_seen[slots]",
    ),
    "docs/test_aapc_phases": (
        "test_every_segment_has_its_times",
        "test_every_message_has_its_times",
    ),
    "docs/test_add_a_collective": (
        "test_the_library_serves_the_added_collective",
        "test_the_session_finds_its_routines_right_and_times_them",
    ),
    "docs/test_add_an_algorithm": (
        "test_the_sample_gives_the_same_bytes_as_native",
    ),
    "docs/test_bench_trials": (
        "test_a_real_launcher_ends_with_a_table",
        "test_a_real_tuning_survives_a_signal",
    ),
    "docs/test_bench_tuning": (
        "test_a_part_on_the_model_has_the_same_result_again_and_a_row_on_the_page[budget]",
        "test_a_part_on_the_model_has_the_same_result_again_and_a_row_on_the_page[jobs]",
        "test_a_part_on_the_model_has_the_same_result_again_and_a_row_on_the_page[shapes]",
    ),
    "docs/test_catalogue": (
        "test_check_finds_a_stale_page_and_the_script_makes_it_anew",
    ),
    "docs/test_examples": (
        "test_*",
    ),
    "docs/test_timing_example": (
        "test_to_resume_the_file_must_be_named",
        "test_header_and_records_say_how_it_was_timed",
        "test_the_log_alone_gives_the_same_library_without_the_file",
        "test_a_log_goes_on_with_the_same_mechanism_only",
        "test_its_decisions_are_measured_again_with_it",
    ),
    "faults/test_faults": (
        "test_a_failure_that_does_not_come_again_costs_no_routine",
        "test_a_job_that_is_slow_but_lives_is_not_given_up",
        "test_a_killed_run_goes_on_again_and_again[1m]",
        "test_a_routine_that_fails_when_checked_is_recorded_and_left_out[0-*]",
        "test_a_routine_that_fails_when_checked_is_recorded_and_left_out[1m-hang]",
        "test_a_routine_that_fails_when_timed_is_recorded_and_left_out",
        "test_a_run_that_is_killed_after_a_failure_goes_on",
        "test_a_signal_ends_a_run_in_order_and_it_goes_on",
        "test_a_host_that_dies_is_named_and_the_run_goes_on_when_it_is_back",
        "test_two_runs_do_not_write_one_folder",
        "test_a_full_disk_ends_a_run_and_it_goes_on_when_there_is_room",
    ),
    "faults/test_lab_hosts": (
        "test_a_host_that_dies_always_ends_a_run_and_once_only_costs_a_new_lab",
    ),
    "faults/test_real_jobs": ("test_nothing_is_left_of_a_run_that_is_killed",),
    "generate/test_generate": (
        "test_generated_c_is_formatted[*-*]",
        "test_files_have_no_dates_and_no_paths[*-*]",
        "test_every_c_file_says_what_made_it_and_one_for_which_cluster[single-16]",
        "test_every_c_file_says_what_made_it_and_one_for_which_cluster[chain-4x4-cyclic]",
    ),
    "inspection/test_damage": (
        "test_damaged_traces_are_read_or_refused[1000-*]",
        "test_damaged_traces_are_read_or_refused[*-allreduce/configured_tree_mine]",
        "test_damaged_traces_are_read_or_refused[*-alltoall/aapc_sender]",
    ),
    "launch/test_lab_endings": ("test_with_closed_streams_the_status_is_the_programs",),
    "launch/test_lab_multicast": ("test_releases_go_by_multicast_over_switches[lose]",),
    "launch/test_lab_rates": (
        "test_one_flow_has_a_link_to_itself[0:1]",
    ),
    "launch/test_lab_recorder": (
        "test_a_program_that_aborts_leaves_a_recording",
        "test_injected_delays_come_back_within_the_stated_error",
        "test_calls_that_a_preloaded_library_serves_are_recorded",
    ),
    "launch/test_openmpi_tune": ("test_a_tuning_by_mpirun_measures_open_mpi",),
    "launch/test_slurm": (
        "test_a_tuning_that_reaches_its_jobs_time_limit_goes_on_when_submitted_again",
        "test_a_rank_that_crashes_ends_the_job",
        "test_ranks_stand_on_the_nodes_in_the_topologys_order[openmpi5]",
        "test_the_script_of_sbatch_tunes_and_may_be_submitted_again",
        "test_ranks_stand_on_the_nodes_in_the_topologys_order[openmpi]",
    ),
    "launch/test_ssh": (
        "test_a_host_that_does_not_answer_is_named[*openmpi]",
        "test_a_program_that_fails_ends_the_job_with_a_failure",
        "test_ranks_stand_on_the_hosts_in_the_topologys_order[openmpi*]",
        "test_a_host_that_does_not_answer_is_named[down-wheel]",
    ),
    "library/test_install": (
        "test_clean_leaves_the_sources",
    ),
    "library/test_reference": ("test_the_report_is_the_same_twice",),
    "measure/test_session": (
        "test_answers_that_lack_something_are_unexpected[answers1*]",
        "test_answers_that_lack_something_are_unexpected[answers2]",
        "test_answers_that_lack_something_are_unexpected[answers3]",
        "test_answers_that_lack_something_are_unexpected[answers4]",
    ),
    "measure/test_sleeping_session": ("test_*",),
    "measure/test_wrong_routines": ("test_*",),
    "mpi/test_adaptive": (
        "test_guard_leaves_a_routine_that_turns_slow_and_says_so",
        "test_random_calls_are_right_and_alike_on_all_ranks",
    ),
    "mpi/test_compositions": (
        "test_a_library_serves_calls_with_them[openmpi]",
        "test_a_session_*",
        "test_all_calls_give_the_same_bytes_as_native[openmpi]",
    ),
    "mpi/test_configured_trees": (
        "test_every_random_file_is_refused_with_a_line_or_gives_right_results",
        "test_random_files_give_right_results_with_events[12-35-variables1]",
        "test_a_barrier_that_releases_ranks_too_early_is_found[variables1]",
        "test_a_rank_that_can_keep_nothing_makes_no_rank_wait",
        "test_random_files_give_right_results_with_events[60-34-variables0]",
        "test_random_trees_get_the_bytes_of_native[1-quick]",
        "test_random_trees_get_the_bytes_of_native[8-quick]",
        "test_ranks_that_share_memory_get_the_bytes_of_native",
        "test_what_ranks_free_together_does_not_wait_for_an_attribute[False]",
    ),
    "mpi/test_conformance": (
        "test_a_check_has_the_same_cases_without_room_for_all_results_of_native",
        "test_all_ranks_of_a_cluster_get_the_bytes_of_native[4-quick]",
        "test_all_ranks_of_a_cluster_get_the_bytes_of_native[6-quick]",
        "test_make_check_passes_with_plain_mpiexec[address, undefined; synchronous]",
        "test_mistakes_are_found[leak]",
        "test_mistakes_are_found[overflow]",
        "test_other_routines_are_right_when_ranks_come_apart[5-*]",
        "test_ranks_that_share_memory_get_the_bytes_of_native[2-6]",
        "test_routines_that_watch_arrivals_are_right_when_ranks_come_apart[6-*]",
        "test_sanitizers_find_nothing_where_nothing_is_buffered",
        "test_some_hosts_of_a_cluster_get_the_bytes_of_native[*-6]",
        "test_synchronous_builds_send_synchronously",
        "test_several_ranks_on_a_host_get_the_bytes_of_native[5-2-quick]",
    ),
    "mpi/test_data": (
        "test_*",
    ),
    "mpi/test_early_ranks": (
        "test_a_chain_is_right_if_ranks_cannot_keep_which_one_coordinates",
        "test_the_token_goes_to_the_late_rank_in_the_call_or_in_the_next_ones[token_tree_semi*]",
        "test_the_token_goes_to_the_late_rank_in_the_call_or_in_the_next_ones[token_tree_rem*]",
        "test_early_ranks_have_a_tree_and_forget_which_rank_was_late[reduce-*]",
    ),
    "mpi/test_events": (
        "test_a_call_that_is_not_kept_costs_less_than_half_of_one_that_is",
        "test_ranks_with_another_library_do_not_wait_for_events",
        "test_the_ring_keeps_the_latest_calls",
        "test_the_fast_library_has_nothing_of_it",
        "test_calls_on_too_many_communicators_are_reported_and_counted",
        "test_threads_that_have_ended_leave_their_memory_to_others",
    ),
    "mpi/test_example_programs": (
        "test_what_fftw_calls_depends_on_its_plan",
    ),
    "mpi/test_fortran": (
        "test_a_disabled_library_serves_nothing[mpich]",
        "test_a_linked_library_serves_fortran[mpich-free_f08.f90]",
        "test_a_static_library_serves_fortran[mpich]",
        "test_every_call_is_counted_once",
        "test_*[openmpi*]",
        "test_a_linked_library_serves_fortran[*-fixed*]",
        "test_a_linked_library_serves_fortran[*-free_mpi*]",
        "test_a_preloaded_library_serves_fortran",
        "test_lines_of_a_fortran_program_adapt_apart",
    ),
    "mpi/test_groups": ("test_*",),
    "mpi/test_inspected_trees": (
        "test_*",
    ),
    "mpi/test_interposers": ("test_*[openmpi*]",),
    "mpi/test_large": (
        "test_small_counts_are_served_as_by_the_functions_without_large_ones",
        "test_elements_that_an_int_does_not_count_are_one_of_a_type",
    ),
    "mpi/test_learned_library": ("test_the_next_run_starts_from_what_programs_learned",),
    "mpi/test_meeting": (
        "test_*[openmpi*]",
        "test_the_trace_says_that_there_is_no_context_for_a_private_duplicate",
    ),
    "mpi/test_mpi4py": ("test_zero_and_nothing_disable_nothing",),
    "mpi/test_multicast": (
        "test_late_ranks_get_what_they_should_on_many_communicators",
        "test_tokens_go_down_deep_trees_and_ranks_answer[lose again-flags1]",
        "test_tokens_go_down_deep_trees_and_ranks_answer[-*]",
        "test_conformance_sanitizers_and_sends_without_buffers",
        "test_datagrams_that_are_lost_or_come_again_change_nothing[fixed_tree-*]",
        "test_what_is_no_group_is_reported_once_and_the_tree_serves_alone[nonsense]",
        "test_datagrams_that_are_lost_or_come_again_change_nothing[token_tree_remembering-*]",
        "test_datagrams_that_are_lost_or_come_again_change_nothing[token_tree_several-lose*]",
    ),
    "mpi/test_openmpi": (
        "test_*",
    ),
    "mpi/test_parameters": (
        "test_every_value_gives_the_same_bytes_as_native",
    ),
    "mpi/test_patterns": (
        "test_calls_of_a_pattern_keep_their_routine_where_others_adapt",
        "test_ranks_ask_each_other_as_often_as_the_documentation_says[a-1536-96]",
        "test_random_counts_arrive_whatever_the_pattern_is[*-1-3000]",
        "test_messages_of_more_elements_than_one_may_have_are_cut",
        "test_random_counts_arrive_whatever_the_pattern_is[6-2-400]",
        "test_routines_of_patterns_give_the_bytes_of_native[6-2-*]",
        "test_leaders_without_room_for_long_blocks_leave_them_to_their_ranks",
        "test_the_pattern_serves_the_first_calls_of_every_round",
        "test_ranks_that_disagree_neither_hang_nor_corrupt[*-words1-*]",
        "test_ranks_that_disagree_neither_hang_nor_corrupt_where_calls_adapt",
        "test_ranks_ask_each_other_as_often_as_the_documentation_says[a-768-*]",
        "test_ranks_ask_each_other_as_often_as_the_documentation_says[h-*]",
        "test_a_program_may_begin_another_cycle",
    ),
    "mpi/test_persistent": (
        "test_random_programs_get_the_bytes_of_native",
        "test_what_never_ends_does_not_keep_mpi_from_ending[persistent_uses.c]",
        "test_an_init_for_which_a_rank_has_no_memory_is_native_on_all_ranks",
        "test_blocking_collectives_of_the_library_are_right_meanwhile[lanes-*]",
        "test_blocking_collectives_of_the_library_are_right_meanwhile[pre_*]",
        "test_blocking_collectives_of_the_library_are_right_meanwhile[token_tree_several-*]",
        "test_persistent_calls_are_right_in_threads_beside_blocking_ones_and_in_fortran[threads-window]",
        "test_persistent_calls_are_right_in_threads_beside_blocking_ones_and_in_fortran[fortran-window]",
        "test_what_never_ends_does_not_keep_mpi_from_ending[sessions.c]",
        "test_random_programs_on_odd_numbers_of_ranks_get_the_bytes_of_native[3-window-0-1]",
    ),
    "mpi/test_programs": (
        "test_what_cannot_be_freed_is_reported_once_and_nothing_is_lost",
        "test_attribute_functions_of_the_application_are_not_called",
        "test_calls_back_to_back_do_not_mix[4-1000]",
        "test_correct_calls_that_differ_between_ranks_are_right[5]",
        "test_elements_that_reach_over_others_are_right[4]",
        "test_intercommunicators_go_native[5]",
        "test_more_live_communicators_than_contexts_for_private_ones_do_no_harm",
        "test_thousands_of_communicators_leave_nothing_behind",
    ),
    "mpi/test_rank_order": ("test_results_are_right_in_any_order[random]",),
    "mpi/test_recorded_fortran": (
        "test_*[openmpi*]",
        "test_calls_of_fortran_programs_are_recorded_at_their_sites[*-fixed*]",
        "test_calls_of_fortran_programs_are_recorded_at_their_sites[*-free_mpi*]",
        "test_calls_of_fortran_programs_are_recorded_at_their_sites[mpich-free_f08*]",
        "test_lines_of_a_fortran_program_are_sites_of_their_own",
    ),
    "mpi/test_recorder": ("test_a_program_waits_for_no_recorder_without_a_word",),
    "mpi/test_revoked": ("test_*",),
    "mpi/test_schedules": (
        "test_every_value_of_every_parameter_gives_the_bytes_of_native",
    ),
    "mpi/test_scratch": (
        "test_no_routine_takes_more_than_it_says[3]",
        "test_leaders_take_no_more_than_they_say",
        "test_no_routine_takes_more_than_it_says[4]",
        "test_results_are_right_under_a_limit[0]",
        "test_results_are_right_under_a_limit[700]",
        "test_results_are_right_under_a_limit[3k]",
    ),
    "mpi/test_session_driver": (
        "test_*",
    ),
    "mpi/test_symbols": (
        "test_*[cluster4]",
        "test_the_libraries_have_every_routine_and_engine_together",
    ),
    "mpi/test_threads": ("test_*",),
    "mpi/test_unmodified": ("test_*",),
    "mpi/test_uses": ("test_*",),
    "report/test_pictures": (
        "test_a_tree_has_an_arrow_for_each_edge_and_shows_its_height[many*]",
        "test_a_tree_has_an_arrow_for_each_edge_and_shows_its_height[three*]",
        "test_a_tree_has_an_arrow_for_each_edge_and_shows_its_height[two*]",
        "test_every_message_of_an_alltoall_has_a_cell[two*]",
        "test_every_message_of_an_alltoall_has_a_cell[chain*]",
        "test_every_message_of_an_alltoall_has_a_cell[many*]",
        "test_every_message_of_an_alltoall_has_a_cell[three*]",
    ),
    "schedule/test_patterns_in_c": (
        "test_every_schedule_is_proven",
    ),
    "schedule/test_rings": (
        "test_a_message_of_a_ring_of_a_hundred_thousand_hosts_passes_at_most_five_switches",
    ),
    "schedule/test_scale": (
        "test_an_alltoall_of_256_hosts_is_proven_to_have_the_fewest_phases",
    ),
    "schedule/test_trees_verify": (
        "test_another_parent_is_judged_as_by_the_oracle[reduce_tree-*]",
    ),
    "test_wheel": ("test_*",),
    "trees/test_trees": (
        "test_random_files_are_trees_or_refused_with_a_line[3000]",
        "test_thousands_of_damaged_files_are_trees_or_refused_with_a_line",
    ),
    "tune/test_spending": (
        "test_more_time_loses_less_and_half_of_it_loses_little",
        "test_the_loss_that_is_stated_is_seldom_exceeded[few sizes-0.5]",
        "test_the_loss_that_is_stated_is_seldom_exceeded[few sizes-1.0]",
    ),
}  # fmt: skip


def place(file: str) -> int:
    """The place of a file, as `folder/test_name`, in the order of the tests."""
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)


def is_wide(file: str, name: str) -> bool:
    """Whether a test, by its file and its name with parameters, is one of WIDE."""
    return any(pattern.fullmatch(name) for pattern in _patterns(WIDE.get(file, ())))


def unmatched(file: str, names: Iterable[str]) -> list[str]:
    """The entries of WIDE for a file that are of none of its tests."""
    known = list(names)
    entries = WIDE.get(file, ())
    return [
        entry
        for entry, pattern in zip(entries, _patterns(entries), strict=True)
        if not any(map(pattern.fullmatch, known))
    ]


def _patterns(entries: Iterable[str]) -> Iterator[re.Pattern[str]]:
    """A pattern for each entry; without parameters it is of all there are."""
    for entry in entries:
        name, bracket, parameters = entry.partition("[")
        any_name = re.escape(name).replace(r"\*", ".*")
        of = re.escape(bracket + parameters).replace(r"\*", ".*") if bracket else r"(\[.*)?"
        yield re.compile(any_name + of, re.DOTALL)
