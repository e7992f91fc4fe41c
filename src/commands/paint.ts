/**
 * Colours, on a terminal only. Node.js looks at the stream and at NO_COLOR, FORCE_COLOR and TERM=dumb; who paints names what a text
 * is, not which colour that is.
 */
import { styleText } from 'node:util';

/** What a text is. */
export type TextRole = 'heading' | 'name' | 'quiet' | 'good' | 'warning' | 'bad';

/** The text with its colour, or as it is. */
export type Paint = (role: TextRole, text: string) => string;

const STYLES = {
  heading: 'bold',
  name: 'cyan',
  quiet: 'dim',
  good: 'green',
  warning: 'yellow',
  bad: 'red',
} as const satisfies Record<TextRole, Parameters<typeof styleText>[0]>;

const DEFAULT_COLUMNS = 80;

/** Paints for one stream. */
export function paintFor(stream: NodeJS.WritableStream): Paint {
  return (role, text) => styleText(STYLES[role], text, { stream });
}

/** How wide a terminal is, in characters. */
export function terminalWidthOf({ columns }: Pick<NodeJS.WriteStream, 'columns'>): number {
  // Some do not know their size and say 0.
  return columns > 0 ? columns : DEFAULT_COLUMNS;
}

/** For places that no person looks at. */
export const paintNothing: Paint = (_role, text) => text;
