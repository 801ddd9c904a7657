/*
 * A protection whose cost is known by count: every SELECT burns processor time, and the burned time is counted.
 *
 * PostgreSQL loads it by `shared_preload_libraries`. At the start of each SELECT's execution the backend reads the
 * processor-time clock of its thread, runs a loop, and reads the clock again. The time between the two readings is
 * summed, and the backend writes the sum to the server's log when its client disconnects. An arm of 0 rounds reads the
 * clock twice all the same, so arms differ only by the loop.
 *
 * The backend's time from the end of one loop to the start of the next is summed as well: the cost of the rest of a
 * statement. Arms do the same work there, but a loop of some microseconds makes it more expensive, and that is part of
 * the protection's cost.
 *
 * Other statements are not changed. The measured workload has none, and those that load the records run only on the
 * server of the first arm, whose data are copied for the others.
 *
 * Tithe gives all arms of a launched database the same settings. So one setting has the rounds of every arm, and the
 * server finds its own by the name of its folder, which Tithe derives from the arm: NUMBER-ARM/data. Therefore Tithe
 * does not know which arm is more expensive: it has to find out.
 */
#include "postgres.h"

#include <time.h>

#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void _PG_init(void);

/* `plain=0 plus1=300`: the setting with the rounds of all arms. */
static char *rounds_of_arms = NULL;

/* PostgreSQL's storage for the variable that show_turns computes. */
static char *turns_shown = NULL;

/* The arm of this server, and its rounds. */
static char arm[NAMEDATALEN];
static uint64 rounds = 0;

/* Counts of this backend. */
static uint64 statements = 0;
static uint64 burned_ns = 0;

/* Statements that followed another one, and the time between the loops. */
static uint64 followed = 0;
static uint64 rest_ns = 0;
static uint64 last_end_ns = 0;

static bool tells = false;

static ExecutorStart_hook_type next_start = NULL;

static uint64
thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64) now.tv_sec * 1000000000 + (uint64) now.tv_nsec;
}

/* Each round depends on the one before; the empty statement keeps the compiler from computing them in advance. */
static void
spin(uint64 turns)
{
	uint64 value = turns;

	for (; turns > 0; turns--)
	{
		value = value * UINT64CONST(6364136223846793005) + 1;
		__asm__ volatile ("" : "+r" (value));
	}
}

/* Log lines of the level LOG are written at every value of log_min_messages. */
static void
tell(int code, Datum unused)
{
	ereport(LOG, (errmsg_internal("known_cost: arm=%s rounds=%llu statements=%llu burned_ns=%llu followed=%llu rest_ns=%llu",
								  arm, (unsigned long long) rounds, (unsigned long long) statements,
								  (unsigned long long) burned_ns, (unsigned long long) followed,
								  (unsigned long long) rest_ns)));
}

static void
burn(void)
{
	uint64 start_ns = thread_cpu_ns();
	uint64 end_ns;

	spin(rounds);
	end_ns = thread_cpu_ns();
	burned_ns += end_ns - start_ns;
	statements++;
	if (last_end_ns > 0)
	{
		rest_ns += start_ns - last_end_ns;
		followed++;
	}
	last_end_ns = end_ns;
	if (!tells)
	{
		tells = true;
		before_shmem_exit(tell, 0);
	}
}

static void
start(QueryDesc *query, int flags)
{
	if (query->operation == CMD_SELECT)
		burn();
	else
		last_end_ns = 0;
	if (next_start)
		next_start(query, flags);
	else
		standard_ExecutorStart(query, flags);
}

/* The name of the arm: the part after the first hyphen in the name of the data folder's parent. */
static void
find_arm(void)
{
	char		folder[MAXPGPATH];
	const char *name;

	strlcpy(folder, DataDir, sizeof(folder));
	get_parent_directory(folder);
	name = strchr(last_dir_separator(folder) ? last_dir_separator(folder) : folder, '-');
	if (name == NULL)
		ereport(FATAL, (errmsg("known_cost: the folder %s is not named after an arm", folder)));
	strlcpy(arm, name + 1, sizeof(arm));
}

/* The rounds of this arm; they are required. */
static void
find_rounds(void)
{
	size_t		length = strlen(arm);
	const char *pair = rounds_of_arms;

	while (pair && *pair)
	{
		if (strncmp(pair, arm, length) == 0 && pair[length] == '=')
		{
			rounds = strtoull(pair + length + 1, NULL, 10);
			return;
		}
		pair = strchr(pair, ' ');
		pair = pair ? pair + 1 : NULL;
	}
	ereport(FATAL, (errmsg("known_cost.rounds names no rounds of arm %s: \"%s\"", arm, rounds_of_arms)));
}

/* The value for a claim on a measured connection: the total rounds of its statements so far. */
static const char *
show_turns(void)
{
	return psprintf("%llu", (unsigned long long) (rounds * statements));
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		ereport(ERROR, (errmsg("known_cost is loaded by shared_preload_libraries")));
	DefineCustomStringVariable("known_cost.rounds", "Rounds that a statement burns, by arm: plain=0 plus1=300.", NULL,
							   &rounds_of_arms, "", PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("known_cost.turns", "Turns that this connection's statements went through.", NULL,
							   &turns_shown, "", PGC_INTERNAL, 0, NULL, NULL, show_turns);
	find_arm();
	find_rounds();
	next_start = ExecutorStart_hook;
	ExecutorStart_hook = start;
}
