import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * What a run spent, and on what. `uncertain_*`: calls that a crash cut off, at the most that they may have cost, beside what is known;
 * `below_nano`: what the runs below it have cost, and theirs. The four parts are of calls that were priced by class, so their
 * sum is at most `cost_nano`. `unpriced_calls` is the number of calls without a price.
 * A hold that a node asked for has the request that it was granted under; `ask_budget` tells a node which of its runs ask.
 */
export const spendingStep: Migration = {
  id: 25,
  name: 'what was spent on what',
  sql: `alter table runs add column uncertain_tokens integer not null default 0;
alter table runs add column uncertain_nano integer not null default 0;
alter table runs add column below_nano integer not null default 0;
alter table runs add column unpriced_calls integer not null default 0;
alter table runs add column input_nano integer not null default 0;
alter table runs add column cache_read_nano integer not null default 0;
alter table runs add column cache_write_nano integer not null default 0;
alter table runs add column output_nano integer not null default 0;
alter table runs add column cache_read_tokens integer not null default 0;
alter table runs add column cache_write_tokens integer not null default 0;
alter table usage_days add column unpriced_calls integer not null default 0;
alter table reservations add column request_id text;
alter table reservations add column output_tokens integer;
alter table tunnel_runs add column ask_budget integer not null default 0;`,
}
