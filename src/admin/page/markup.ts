/** HTML that cannot be broken out of: whatever is put into a template is escaped, unless it is markup itself. */

/** A piece of HTML. */
export class Markup {
  readonly text: string;

  /** @param text HTML, taken as it is */
  constructor(text: string) {
    this.text = text;
  }
}

/** What may stand in a template; what is null, undefined or false leaves nothing. */
export type Content = Markup | string | number | null | undefined | false | readonly Content[];

/** The tag of a template: its own text is markup, every value is escaped. */
export function markup(strings: TemplateStringsArray, ...values: readonly Content[]): Markup {
  let text = strings[0] ?? '';
  for (const [index, value] of values.entries()) text += toHtml(value) + (strings[index + 1] ?? '');
  return new Markup(text);
}

function toHtml(content: Content): string {
  if (content === null || content === undefined || content === false) return '';
  if (content instanceof Markup) return content.text;
  if (typeof content === 'object') return content.map(toHtml).join('');
  return String(content).replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
