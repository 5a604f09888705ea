const OF_A_TENANT = /^(?:(?:session|tenant)\/|route-tenant\/[^/]*\/)([A-Za-z0-9._-]{1,64})\//

/** Whose account a total of the ledger is; undefined for what all tenants spend together. */
export function accountTenant(key: string): string | undefined {
  return OF_A_TENANT.exec(key)?.[1]
}
