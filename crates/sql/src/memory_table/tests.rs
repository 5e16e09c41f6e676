//! Versions without a connection: what an embedding program may do.

use arrow::array::Int64Array;
use datafusion::execution::memory_pool::UnboundedMemoryPool;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;

use super::*;

fn batch(schema: &SchemaRef, values: Vec<ArrayRef>) -> RecordBatch {
    RecordBatch::try_new(schema.clone(), values).unwrap()
}

fn numbers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn pool() -> Arc<dyn MemoryPool> {
    Arc::new(UnboundedMemoryPool::default())
}

fn table(rows: i64) -> MemoryTable {
    let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, true)]));
    let key = Key { is_primary: true, columns: vec![0] };
    let rules = Rules::of("t", schema.clone()).with(vec![key], Vec::new());
    let (mut charged, common) = (Charged::default(), Common::new(&pool()));
    let rows = batch(&schema, vec![numbers(0..rows)]);
    let charge = common.ledger.charge("t", &rows).unwrap();
    charged.push(rows, Arc::new(charge));
    MemoryTable::new("t", rules, BTreeMap::new(), vec![charged], common).unwrap()
}

/// Inserts a batch into a table in a role.
async fn insert(table: &MemoryTable, rows: RecordBatch) -> DataFusionResult<()> {
    let context = SessionContext::new();
    let source = MemorySourceConfig::try_new(&[vec![rows.clone()]], rows.schema(), None)?;
    let input = DataSourceExec::from_data_source(source);
    let plan = table.insert_into(&context.state(), input, InsertOp::Append).await?;
    collect(plan, context.task_ctx()).await.map(|_| ())
}

async fn delete(table: &MemoryTable, rows: Vec<u64>) -> DataFusionResult<()> {
    insert(table, batch(&table.schema(), vec![Arc::new(UInt64Array::from(rows))])).await
}

#[tokio::test]
async fn changes_of_an_older_version_are_refused() {
    let table = table(10);
    let (first, second) = (table.in_role(Role::Deleted), table.in_role(Role::Deleted));
    delete(&first, vec![1, 3]).await.unwrap();
    let error = delete(&second, vec![0]).await.unwrap_err().to_string();
    assert!(error.contains("it has changed since the statement was planned"), "{error}");
    delete(&table.in_role(Role::Deleted), vec![0]).await.unwrap();
    let rows = table.in_role(Role::Rows);
    assert_eq!(rows.partitions().iter().flatten().map(RecordBatch::num_rows).sum::<usize>(), 7);
    // The keys of the rows that have gone are free, and no others.
    insert(&rows, batch(&rows.schema(), vec![numbers([0, 1, 3])])).await.unwrap();
    assert!(insert(&rows, batch(&rows.schema(), vec![numbers([20, 5])])).await.is_err());
    insert(&rows, batch(&rows.schema(), vec![numbers([20])])).await.unwrap();
}

#[tokio::test]
async fn a_table_without_a_name_takes_no_rows() {
    let table = table(1);
    table.be_listed(false);
    let error = insert(&table, batch(&table.schema(), vec![numbers([5])])).await.unwrap_err().to_string();
    assert!(error.contains("it has been dropped or replaced"), "{error}");
    table.be_listed(true);
    insert(&table, batch(&table.schema(), vec![numbers([5])])).await.unwrap();
}

#[tokio::test]
async fn rows_that_come_one_by_one_are_merged() {
    let table = table(1);
    for key in 1..200 {
        insert(&table, batch(&table.schema(), vec![numbers([key])])).await.unwrap();
    }
    let rows = table.in_role(Role::Rows);
    let batches = &rows.partitions()[0];
    assert!(batches.len() <= 8, "{} batches", batches.len());
    let keys: Vec<i64> = (batches.iter())
        .flat_map(|batch| batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec())
        .collect();
    assert_eq!(keys, (0..200).collect::<Vec<_>>());
}

#[test]
fn a_buffer_is_charged_once_and_as_long_as_it_is_held() {
    let pool = pool();
    let ledger = Arc::new(Ledger::new(&pool));
    let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, true)]));
    let whole = batch(&schema, vec![numbers(0..1024)]);
    let first = ledger.charge("t", &whole.slice(0, 10)).unwrap();
    let second = ledger.charge("u", &whole.slice(10, 1000)).unwrap();
    assert_eq!(pool.reserved(), 8192);
    drop(first);
    assert_eq!(pool.reserved(), 8192);
    let other = self::pool();
    ledger.move_to(&other);
    assert_eq!((pool.reserved(), other.reserved()), (0, 8192));
    drop(second);
    assert_eq!(other.reserved(), 0);
}
