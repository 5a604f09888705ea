import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * `webhook_deliveries` is the outbox: one row for each event and each webhook that wants it, written in the transaction that
 * makes the event so. `due_ms` is when it is sent next, null once it is settled; taking one moves it on by a lease, so that
 * what a process died over is sent again.
 */
export const webhooksStep: Migration = {
  id: 7,
  name: 'webhooks',
  sql: `create table webhooks (
  id text primary key,
  tenant_id text not null references tenants (id) on delete cascade,
  url text not null,
  events text not null,
  enabled integer not null,
  sealed_secret text not null,
  created_ms integer not null,
  updated_ms integer not null
) strict;
create index webhooks_list on webhooks (tenant_id, created_ms, id);

create table webhook_deliveries (
  webhook_id text not null references webhooks (id) on delete cascade,
  event_id text not null,
  type text not null,
  at_ms integer not null,
  data text not null,
  outcome text not null,
  attempt integer not null default 0,
  status integer,
  error text,
  due_ms integer,
  created_ms integer not null,
  primary key (webhook_id, event_id)
) strict;
create index webhook_deliveries_list on webhook_deliveries (webhook_id, created_ms, event_id);
create index webhook_deliveries_outcome on webhook_deliveries (webhook_id, outcome, created_ms, event_id);
create index webhook_deliveries_due on webhook_deliveries (due_ms) where due_ms is not null;
create index webhook_deliveries_turn on webhook_deliveries (webhook_id, due_ms) where due_ms is not null;
create index webhook_deliveries_old on webhook_deliveries (created_ms) where due_ms is null;`,
}
