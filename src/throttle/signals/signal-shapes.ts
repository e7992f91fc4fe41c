/**
 * Recognises the shapes in which an upstream states its limits: which fields, and in which form their values are (pure). A
 * known shape costs one short string and one look-up.
 */

/** The sets of shapes stay bounded, whatever an upstream makes up. */
const MAX_SHAPES = 50;
const MAX_SPELLINGS = 200;

/** Remembers shapes: at most 50, after which nothing is new any more. */
export class SignalShapes {
  readonly #shapes = new Set<string>();
  /** Shapes with their fields in the order as received, so that a known one need not be sorted. */
  readonly #spellings = new Set<string>();

  /**
   * @param on what kind of answer it was
   * @param fields in lower case, with their values
   * @returns the shape in words, when it is seen for the first time
   */
  describeIfNew(on: string, fields: ReadonlyMap<string, string>): string | undefined {
    let spelling = on;
    for (const [name, value] of fields) spelling += `, ${name} ${describeFormat(value)}`;
    if (this.#spellings.has(spelling) || this.#shapes.size >= MAX_SHAPES) return undefined;
    if (this.#spellings.size < MAX_SPELLINGS) this.#spellings.add(spelling);
    const shape = [...fields]
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

/** The form of a field's value, in a word or two. */
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
