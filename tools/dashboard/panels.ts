/**
 * Builds the panels of the dashboard: figures and graphs. rows.ts has their queries. Grafana's own
 * builders make the JSON, so that its shape is theirs.
 */
import {
  BigValueColorMode,
  BigValueGraphMode,
  GraphGradientMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizOrientation,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import { FieldColorBuilder, FieldColorModeId } from '@grafana/grafana-foundation-sdk/dashboard';
import { ThresholdsConfigBuilder, ThresholdsMode } from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as BarsBuilder } from '@grafana/grafana-foundation-sdk/bargauge';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as GraphBuilder } from '@grafana/grafana-foundation-sdk/timeseries';

/** The data source variable of every panel and query. */
export const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };

const COLUMNS = 24;
const STAT_HEIGHT = 4;
const GRAPH_HEIGHT = 8;

interface PanelOptions {
  readonly title: string;
  /** What the panel shows, and which value is normal. */
  readonly description: string;
  /** Of Grafana's units. */
  readonly unit: string;
  readonly decimals?: number;
}

export interface StatOptions extends PanelOptions {
  readonly query: string;
  /** From these values on, in ascending order; below the first it is `base`. Default: never coloured. */
  readonly steps?: readonly { readonly from: number; readonly color: string }[];
  readonly base?: string;
  /** A label in the value's stead. */
  readonly legend?: string;
}

export interface GraphOptions extends PanelOptions {
  /** What is asked and what it is called, labels in double braces. */
  readonly queries: readonly (readonly [expr: string, legend: string])[];
  /** Series add up to one amount. Default false. */
  readonly stacked?: boolean;
  /** Default: as high as the values. */
  readonly max?: number;
  /** The newest value of each series as a bar, red from 0.9 on. Default: lines over time. */
  readonly isBars?: boolean;
}

export type Panel = StatBuilder | GraphBuilder | BarsBuilder;

/** A number to be read at a glance. @param columns of the 24 */
export function createStat(id: number, columns: number, shown: StatOptions): StatBuilder {
  const { steps = [], base = 'text' } = shown;
  const thresholds = [{ value: null, color: base }, ...steps.map(({ from, color }) => ({ value: from, color }))];
  const panel = new StatBuilder()
    .id(id)
    .title(shown.title)
    .description(shown.description)
    .datasource(DATASOURCE)
    .unit(shown.unit)
    .span(columns)
    .height(STAT_HEIGHT)
    .noValue('none')
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']).values(false))
    .thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(thresholds))
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.Thresholds))
    .colorMode(BigValueColorMode.Value)
    .graphMode(shown.legend === undefined ? BigValueGraphMode.Area : BigValueGraphMode.None)
    .targets([createQuery('A', shown.query, shown.legend ?? '').datasource(DATASOURCE)]);
  return shown.decimals === undefined ? panel : panel.decimals(shown.decimals);
}

/** The newest value of each series. @param columns of the 24 */
export function createBars(
  id: number,
  columns: number,
  { title, description, unit, queries }: GraphOptions,
): BarsBuilder {
  const steps = [
    { value: null, color: 'green' },
    { value: 0.9, color: 'red' },
  ];
  return new BarsBuilder()
    .id(id)
    .title(title)
    .description(description)
    .datasource(DATASOURCE)
    .unit(unit)
    .span(columns)
    .height(GRAPH_HEIGHT)
    .min(0)
    .max(1)
    .noValue('none')
    .orientation(VizOrientation.Horizontal)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']).values(false))
    .thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps))
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.Thresholds))
    .targets(queries.map(([expr, legend], index) => createQuery(refId(index), expr, legend)));
}

/** Lines over time. @param columns of the 24 */
export function createGraph(id: number, columns: number, shown: GraphOptions): GraphBuilder {
  const { stacked = false } = shown;
  const panel = new GraphBuilder()
    .id(id)
    .title(shown.title)
    .description(shown.description)
    .datasource(DATASOURCE)
    .unit(shown.unit)
    .span(columns)
    .height(GRAPH_HEIGHT)
    .min(0)
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.PaletteClassicByName))
    .lineWidth(1)
    .fillOpacity(stacked ? 30 : 5)
    .gradientMode(GraphGradientMode.None)
    .showPoints(VisibilityMode.Never)
    .stacking(new StackingConfigBuilder().mode(stacked ? StackingMode.Normal : StackingMode.None))
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true),
    )
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
    .targets(shown.queries.map(([expr, legend], index) => createQuery(refId(index), expr, legend)));
  if (shown.max !== undefined) panel.max(shown.max);
  return shown.decimals === undefined ? panel : panel.decimals(shown.decimals);
}

/** Equal parts of a line of the grid. */
export function panelWidth(panels: number): number {
  return COLUMNS / panels;
}

function createQuery(id: string, expr: string, legend: string): DataqueryBuilder {
  return new DataqueryBuilder().refId(id).datasource(DATASOURCE).expr(expr).legendFormat(legend).range();
}

function refId(index: number): string {
  return String.fromCharCode('A'.charCodeAt(0) + index);
}
