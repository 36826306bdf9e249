export interface Schema {
  Tables: {
    projects: {
      Row: {
        tenant_id: string
        id: number
        name: string
      }
      Insert: New<'projects', 'name'>
      Update: Changes<'projects'>
      Relations: {
        tasks: Many<'tasks'>
      }
    }
    tasks: {
      Row: {
        tenant_id: string
        id: string
        project_id: number
        title: string
        done: boolean
        created_at: string
      }
      Insert: New<'tasks', 'id' | 'project_id' | 'title'>
      Update: Changes<'tasks'>
      Relations: {
        projects: One<'projects'>
      }
    }
  }
  Functions: {
    transaction_id: { Args: Nothing; Returns: number | null }
  }
  Enums: object
}

/** The name of a table. */
export type Table = keyof Schema['Tables']

/** A row as the API answers it. */
export type Row<T extends Table> = Schema['Tables'][T]['Row']

/** A value in a body: a number with more digits than a JavaScript number has is a text. */
export type Written<V> = V extends number ? V | `${number}` : V

/** A row to insert. Columns with a default can be omitted. */
export type New<T extends Table, Required extends keyof Row<T>, Never extends keyof Row<T> = never> = {
  [C in Required]: Written<Row<T>[C]>
} & { [C in Exclude<keyof Row<T>, Required | Never>]?: Written<Row<T>[C]> }

/** The columns to change. A number can also be incremented. */
export type Changes<T extends Table, Never extends keyof Row<T> = never> = {
  [C in Exclude<keyof Row<T>, Never>]?:
    | Written<Row<T>[C]>
    | (number extends Row<T>[C] ? { $inc: Written<number> } : never)
}

/** A relation to one row, or to none. */
export type One<T> = { table: T; many: false }

/** A relation to any number of rows. */
export type Many<T> = { table: T; many: true }

/** No arguments. */
export type Nothing = { [argument: string]: never }
