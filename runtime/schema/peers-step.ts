import type { Migration } from '../../shared/sql/migrate.ts'

/** Of several control planes, the one that a node has dialled: the address at which the others reach it, where it has one. */
export const peersStep: Migration = {
  id: 22,
  name: 'control planes that pass on',
  sql: 'alter table nodes add column plane_url text;',
}
