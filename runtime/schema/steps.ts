import type { Migration } from '../../shared/sql/migrate.ts'
import { runtimeBaseline } from './baseline.ts'

/** A run whose labels were damaged in the store can be deleted. */
const DAMAGED_LABELS = `drop trigger run_labels_gone;
create trigger run_labels_gone after delete on runs when old.labels <> '{}' begin
  delete from run_labels where (tenant, name, value, made_ms, run_id) in
    (select old.tenant_id, label.key, label.value, old.created_ms, old.id from json_each(iif(json_valid(old.labels), old.labels, '{}')) as label);
end;`

/** Of a name, the agents that had it before: what they used today counts against the budget that stays with the name. */
const FORMER_AGENTS = 'create index agents_former on agents (tenant_id, name, deleted_ms) where deleted_ms is not null;'

/** Of sessions and turns, the calls that their costs leave out. */
const UNPRICED_TURNS = `alter table turns add column unpriced_calls integer not null default 0;
alter table sessions add column unpriced_calls integer not null default 0;
update turns set unpriced_calls = r.unpriced_calls from runs as r where r.id = turns.run_id and r.unpriced_calls > 0;
update sessions set unpriced_calls = (select sum(unpriced_calls) from turns where session_id = sessions.id)
  where id in (select session_id from turns where unpriced_calls > 0);`

/** A row of more than 1,002 bytes, as most receipts are, takes a page of its own in a table without rowid, 4 kB (decision 110). */
const RECEIPT_ROWS = `create table receipt_rows (
  run_id text primary key,
  tenant_id text not null,
  issued_ms integer not null,
  envelope text not null
) strict;
insert into receipt_rows (run_id, tenant_id, issued_ms, envelope) select run_id, tenant_id, issued_ms, envelope from receipts;
drop table receipts;
alter table receipt_rows rename to receipts;`

/** A move to another shard has triggers on the table; and a server ends a transaction that takes it 5 s. */
const RECEIPTS_STAY = `select 1 from sqlite_schema where type = 'trigger' and tbl_name = 'receipts'
union all select 1 from (select 1 from receipts limit 1 offset 100000)`

/**
 * Each run wrote a page for each of these indexes, and others do the same (decision 116). Dropping one overwrites its pages, which a
 * large store keeps.
 */
const FEWER_INDEXES = `drop index runs_list;
drop index runs_version;
drop index runs_open;`

const MANY_RUNS = 'select 1 from (select 1 from runs limit 1 offset 100000)'

/** The runtime's tables, step by step, from 0.3.0 on. A released step is never edited: add one. */
export const runtimeSteps: readonly Migration[] = [
  { id: 100, name: 'baseline of 0.3.0', sql: runtimeBaseline },
  { id: 101, name: 'labels that are no JSON', sql: DAMAGED_LABELS },
  { id: 102, name: 'agents that had a name before', sql: FORMER_AGENTS },
  { id: 103, name: 'calls of turns without a price', sql: UNPRICED_TURNS },
  { id: 104, name: 'receipts in rows', sql: RECEIPT_ROWS, unless: RECEIPTS_STAY },
  { id: 105, name: 'fewer indexes of runs', sql: FEWER_INDEXES, unless: MANY_RUNS },
]
