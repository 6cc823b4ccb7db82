CREATE TABLE `budget_reservations` (
	`run_id` text PRIMARY KEY NOT NULL,
	`reserved_tokens` integer NOT NULL,
	`actual_tokens` integer,
	`state` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	`reconciled_at_ms` integer,
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `cooldowns` (
	`key` text PRIMARY KEY NOT NULL,
	`until_ms` integer NOT NULL,
	`reason` text NOT NULL,
	`source_run_id` text,
	`updated_at_ms` integer NOT NULL,
	FOREIGN KEY (`source_run_id`) REFERENCES `runs`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `events` (
	`sequence` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`occurred_at_ms` integer NOT NULL,
	`kind` text NOT NULL,
	`run_id` text,
	`ticket_id` text,
	`data_json` text DEFAULT '{}' NOT NULL
);
--> statement-breakpoint
CREATE INDEX `events_by_run` ON `events` (`run_id`,`sequence`);--> statement-breakpoint
CREATE INDEX `events_by_ticket` ON `events` (`ticket_id`,`sequence`);--> statement-breakpoint
CREATE TABLE `id_counters` (
	`kind` text PRIMARY KEY NOT NULL,
	`next_ordinal` integer NOT NULL,
	CONSTRAINT "id_counters_positive" CHECK("id_counters"."next_ordinal" > 0)
);
--> statement-breakpoint
CREATE TABLE `leases` (
	`ticket_id` text PRIMARY KEY NOT NULL,
	`run_id` text NOT NULL,
	`owner_id` text NOT NULL,
	`acquired_at_ms` integer NOT NULL,
	`renewed_at_ms` integer NOT NULL,
	`expires_at_ms` integer NOT NULL,
	FOREIGN KEY (`ticket_id`) REFERENCES `tickets`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `leases_run_id_unique` ON `leases` (`run_id`);--> statement-breakpoint
CREATE INDEX `leases_by_expiry` ON `leases` (`expires_at_ms`);--> statement-breakpoint
CREATE TABLE `notes` (
	`id` text PRIMARY KEY NOT NULL,
	`run_id` text NOT NULL,
	`text` text NOT NULL,
	`recorded_at_ms` integer NOT NULL,
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `notes_by_run` ON `notes` (`run_id`,`recorded_at_ms`);--> statement-breakpoint
CREATE TABLE `projects` (
	`id` text PRIMARY KEY NOT NULL,
	`file_path` text,
	`source` text DEFAULT 'local' NOT NULL,
	`source_ref` text,
	`title` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	`updated_at_ms` integer NOT NULL,
	CONSTRAINT "projects_origin" CHECK("projects"."file_path" is not null or "projects"."source_ref" is not null)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `projects_file_path_unique` ON `projects` (`file_path`);--> statement-breakpoint
CREATE UNIQUE INDEX `projects_source_ref` ON `projects` (`source`,`source_ref`);--> statement-breakpoint
CREATE TABLE `request_keys` (
	`key` text PRIMARY KEY NOT NULL,
	`request_hash` text NOT NULL,
	`trigger_id` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	FOREIGN KEY (`trigger_id`) REFERENCES `triggers`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `run_evidence` (
	`sequence` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`run_id` text NOT NULL,
	`kind` text NOT NULL,
	`observed_at_ms` integer NOT NULL,
	`dedupe_key` text,
	`data_json` text NOT NULL,
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `run_evidence_dedupe_key_unique` ON `run_evidence` (`dedupe_key`);--> statement-breakpoint
CREATE INDEX `evidence_by_run` ON `run_evidence` (`run_id`,`sequence`);--> statement-breakpoint
CREATE TABLE `runs` (
	`id` text PRIMARY KEY NOT NULL,
	`trigger_id` text NOT NULL,
	`ticket_id` text NOT NULL,
	`state` text NOT NULL,
	`attempt` integer NOT NULL,
	`target_branch` text,
	`branch` text,
	`worktree_path` text,
	`pid` integer,
	`pid_start_time` integer,
	`process_group_id` integer,
	`worker_token` text,
	`worker_socket_path` text,
	`started_at_ms` integer,
	`exited_at_ms` integer,
	`exit_code` integer,
	`cleanup_eligible_at_ms` integer,
	`cleaned_at_ms` integer,
	`flow_json` text,
	`ticket_json` text,
	`created_at_ms` integer NOT NULL,
	`updated_at_ms` integer NOT NULL,
	FOREIGN KEY (`trigger_id`) REFERENCES `triggers`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`ticket_id`) REFERENCES `tickets`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `runs_by_ticket` ON `runs` (`ticket_id`,`created_at_ms`);--> statement-breakpoint
CREATE INDEX `runs_by_trigger` ON `runs` (`trigger_id`,`created_at_ms`);--> statement-breakpoint
CREATE INDEX `runs_unsettled` ON `runs` (`created_at_ms`) WHERE "runs"."exited_at_ms" is null;--> statement-breakpoint
CREATE INDEX `runs_to_clean` ON `runs` (`cleanup_eligible_at_ms`) WHERE "runs"."cleaned_at_ms" is null;--> statement-breakpoint
CREATE TABLE `scheduler_state` (
	`singleton` integer PRIMARY KEY NOT NULL,
	`paused` integer DEFAULT false NOT NULL,
	`draining` integer DEFAULT false NOT NULL,
	`journal_id` text DEFAULT (lower(hex(randomblob(8)))) NOT NULL,
	`updated_at_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `stage_runs` (
	`run_id` text NOT NULL,
	`seq` integer NOT NULL,
	`stage_index` integer NOT NULL,
	`stage` text NOT NULL,
	`state` text,
	`attempt` integer DEFAULT 1 NOT NULL,
	`phase` text DEFAULT 'action' NOT NULL,
	`started_at_ms` integer,
	`finished_at_ms` integer,
	`exit_code` integer,
	`evidence_json` text,
	PRIMARY KEY(`run_id`, `seq`),
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `stage_runs_execution` ON `stage_runs` (`run_id`,`stage_index`,`attempt`,`phase`);--> statement-breakpoint
CREATE TABLE `ticket_blockers` (
	`ticket_id` text NOT NULL,
	`blocker_id` text NOT NULL,
	`position` integer NOT NULL,
	PRIMARY KEY(`ticket_id`, `blocker_id`),
	FOREIGN KEY (`ticket_id`) REFERENCES `tickets`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`blocker_id`) REFERENCES `tickets`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `blockers_by_blocker` ON `ticket_blockers` (`blocker_id`);--> statement-breakpoint
CREATE TABLE `tickets` (
	`id` text PRIMARY KEY NOT NULL,
	`project_id` text NOT NULL,
	`file_path` text,
	`source` text DEFAULT 'local' NOT NULL,
	`source_ref` text,
	`state` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`content_hash` text,
	`name` text DEFAULT '' NOT NULL,
	`worktree` text,
	`target` text,
	`model` text,
	`effort` text,
	`flow` text,
	`body` text,
	`held_reason` text,
	`missing_at_ms` integer,
	`created_at_ms` integer NOT NULL,
	`updated_at_ms` integer NOT NULL,
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "tickets_origin" CHECK("tickets"."file_path" is not null or "tickets"."source_ref" is not null)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `tickets_file_path_unique` ON `tickets` (`file_path`);--> statement-breakpoint
CREATE INDEX `tickets_by_project_state` ON `tickets` (`project_id`,`state`);--> statement-breakpoint
CREATE INDEX `tickets_by_recency` ON `tickets` (`created_at_ms`,`id`);--> statement-breakpoint
CREATE INDEX `tickets_by_state` ON `tickets` (`state`,`created_at_ms`,`id`);--> statement-breakpoint
CREATE INDEX `tickets_by_name` ON `tickets` (`name`,`id`,`created_at_ms`);--> statement-breakpoint
CREATE UNIQUE INDEX `tickets_source_ref` ON `tickets` (`source`,`source_ref`);--> statement-breakpoint
CREATE TABLE `trigger_filters` (
	`trigger_id` text NOT NULL,
	`ticket_id` text NOT NULL,
	PRIMARY KEY(`trigger_id`, `ticket_id`),
	FOREIGN KEY (`trigger_id`) REFERENCES `triggers`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`ticket_id`) REFERENCES `tickets`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `triggers` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`state` text NOT NULL,
	`ticket_id` text,
	`project_id` text,
	`eligible_at_ms` integer,
	`interval_ms` integer,
	`created_at_ms` integer NOT NULL,
	`updated_at_ms` integer NOT NULL,
	FOREIGN KEY (`ticket_id`) REFERENCES `tickets`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "triggers_scope" CHECK("triggers"."ticket_id" is null or "triggers"."project_id" is null)
);
--> statement-breakpoint
CREATE INDEX `triggers_by_state` ON `triggers` (`state`,`created_at_ms`,`id`);--> statement-breakpoint
CREATE INDEX `triggers_by_ticket` ON `triggers` (`ticket_id`,`state`);