/**
 * Finds new shapes in which an upstream states its limits: the names of the header fields and the forms of their values (pure). A
 * known shape costs one short string and one look-up.
 */

/** Bounds for upstreams whose shapes vary without end. */
const MAX_SHAPES = 50;
const MAX_SPELLINGS = 200;

/** Remembers at most 50 shapes; after that no shape is new. */
export class SignalShapes {
  readonly #shapes = new Set<string>();
  /** Shapes in the order as received, so that a known one is not sorted. */
  readonly #spellings = new Set<string>();

  /**
   * @param on kind of the response
   * @param headers by their names in lower case
   * @returns the shape in words if it is new
   */
  describeIfNew(on: string, headers: ReadonlyMap<string, string>): string | undefined {
    let spelling = on;
    for (const [name, value] of headers) spelling += `, ${name} ${describeFormat(value)}`;
    if (this.#spellings.has(spelling) || this.#shapes.size >= MAX_SHAPES) return undefined;
    if (this.#spellings.size < MAX_SPELLINGS) this.#spellings.add(spelling);
    const shape = [...headers]
      .map(([name, value]) => `${name} ${describeFormat(value)}`)
      .sort()
      .join(', ');
    const key = `${on}: ${shape}`;
    if (this.#shapes.has(key)) return undefined;
    this.#shapes.add(key);
    return shape === '' ? 'no field' : shape;
  }
}

const EPOCH_SECONDS_DIGITS = 10;
const EPOCH_MS_DIGITS = 13;

/** The form of a value in one or two words. */
function describeFormat(value: string): string {
  if (/^\d+(?:\.\d+)?$/.test(value))
    return describeNumberFormat(value.includes('.') ? value.indexOf('.') : value.length);
  const first = value.charCodeAt(0);
  if (first >= 0x30 && first <= 0x39) return /^\d{4}-\d\d-/.test(value) ? 'timestamp' : 'list';
  if (first === 0x22) return 'items';
  if (/^[A-Z][a-z]{2,8},? /.test(value)) return 'date';
  return value.includes('=') ? 'dictionary' : 'words';
}

function describeNumberFormat(digits: number): string {
  if (digits === EPOCH_SECONDS_DIGITS) return 'epoch seconds';
  return digits === EPOCH_MS_DIGITS ? 'epoch milliseconds' : 'number';
}
