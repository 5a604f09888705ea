import { ApiError } from '../../shared/http/api-error.ts'
import { classPrices, PriceError } from '../../shared/prices/price.ts'
import { type Db, objectIn, type RowOf, readRow, rowsOf } from '../../shared/sql/db.ts'
import type { ModelSettings } from '../../shared/wire/runtime/provider.ts'
import type { modelSettings } from '../schema/tables.ts'
import { DEFAULT_SETTINGS } from './candidates.ts'

export type ModelSettingsStore = ReturnType<typeof modelSettingsStore>

export function modelSettingsStore(db: Db) {
  return {
    /** What the tenant has set, or what holds until it does. */
    async get(tenantId: string): Promise<ModelSettings> {
      const sql = 'select settings from model_settings where tenant_id = ?'
      const rows = rowsOf<Pick<RowOf<typeof modelSettings>, 'settings'>>(await db.execute({ sql, args: [tenantId] }))
      const stored = rows[0]?.settings
      if (stored === undefined) return DEFAULT_SETTINGS
      return readRow('the settings of models', rows[0]!, () => ({
        ...DEFAULT_SETTINGS,
        ...objectIn<ModelSettings>(stored),
      }))
    },

    async put(tenantId: string, settings: ModelSettings, nowMs: number): Promise<void> {
      await db.execute({
        sql: `insert into model_settings (tenant_id, settings, updated_ms) values (?1, ?2, ?3)
on conflict do update set settings = ?2, updated_ms = ?3`,
        args: [tenantId, JSON.stringify(settings), nowMs],
      })
    },
  }
}

/** Refuses a price that could not be kept exactly, before it makes the bill of a run wrong. */
export function checkPrices({ prices }: ModelSettings): void {
  const details = Object.entries(prices).flatMap(([model, { inPerMTok, outPerMTok }]) => {
    try {
      classPrices({ input: inPerMTok, output: outPerMTok }, 'chat')
      return []
    } catch (error) {
      if (!(error instanceof PriceError)) throw error
      return [{ path: `prices.${model}`, message: error.message }]
    }
  })
  const [first] = details
  if (first) throw new ApiError('validation_failed', `${first.path}: ${first.message}`, { details })
}
