import { customType } from 'drizzle-orm/sqlite-core'

/** A blob, as the client reads it. */
export const bytes = customType<{ data: ArrayBuffer }>({ dataType: () => 'blob' })
