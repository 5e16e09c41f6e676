//! Matrix Market files of several dimensions.

use warpcube_cube::facts::{Facts, ValueType, Values};
use warpcube_cube::matrix_market::{IndexBase, read};
use warpcube_cube::model::CubeModel;

fn loaded(text: &str, base: Option<IndexBase>) -> (CubeModel, Facts) {
    read(text.as_bytes(), "m", base).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Cells as names of elements and a value.
fn cells((model, facts): &(CubeModel, Facts)) -> Vec<String> {
    let cell = |index: usize| {
        let names = model
            .dimensions()
            .iter()
            .zip(facts.cell(index))
            .map(|(dimension, base)| dimension.element(dimension.at_base(base).unwrap()).name().to_string());
        let value = match &facts.base().columns()[0].values {
            Values::Decimals(values) => values[index].to_string(),
            Values::Doubles(values) => values[index].to_string(),
        };
        format!("{} = {value}", names.collect::<Vec<_>>().join(","))
    };
    (0..facts.len()).map(cell).collect()
}

#[test]
fn real_integer_and_pattern() {
    let real = "%%MatrixMarket matrix coordinate real general\n% a comment\n\n3 4 3\n1 2 0.5\n%\n3 4 -7e-2\n1 2 1\n";
    let real = loaded(real, None);
    assert_eq!(cells(&real), ["1,2 = 1.5", "3,4 = -0.07"], "entries of one cell add up");
    assert_eq!(real.0.measures()[0].value, ValueType::Double);
    let names: Vec<&str> = real.0.dimensions().iter().map(|dimension| dimension.name()).collect();
    assert_eq!(names, ["d1", "d2"]);
    let integer = loaded("%%matrixmarket MATRIX coordinate Integer general\r\n2 2 2 1\r\n2 1 2 -9\r\n", None);
    assert_eq!(cells(&integer), ["2,1,2 = -9"]);
    assert_eq!(integer.0.measures()[0].value, ValueType::Decimal { scale: 0 });
    let pattern = loaded("%%MatrixMarket matrix coordinate pattern general\n5 2\n5\n1\n", None);
    assert_eq!(cells(&pattern), ["1 = 1", "5 = 1"]);
    let empty = loaded("%%MatrixMarket matrix coordinate real general\n0 3 0\n", None);
    assert_eq!((empty.1.len(), empty.0.dimensions()[1].base_count()), (0, 3));
}

#[test]
fn coordinates_count_from_one_or_zero() {
    let text = "%%MatrixMarket matrix coordinate integer general\n3 2 2\n2 1 5\n0 1 6\n";
    assert_eq!(cells(&loaded(text, None)), ["0,1 = 6", "2,1 = 5"]);
    assert_eq!(cells(&loaded(text, Some(IndexBase::Zero))), ["0,1 = 6", "2,1 = 5"]);
    let error = read(text.as_bytes(), "m", Some(IndexBase::One)).unwrap_err().to_string();
    assert_eq!(error, "line 4, field 1: expected a coordinate of d1, 1 to 3, found 0");
    let ambiguous = "%%MatrixMarket matrix coordinate integer general\n3 3 1\n1 2 5\n";
    assert_eq!(cells(&loaded(ambiguous, None)), ["1,2 = 5"]);
    assert_eq!(loaded(ambiguous, Some(IndexBase::Zero)).1.cell(0), [1, 2]);
    assert_eq!(loaded(ambiguous, None).1.cell(0), [0, 1]);
}

#[test]
fn errors_have_line_and_field() {
    let file = |body: &str| format!("%%MatrixMarket matrix coordinate real general\n{body}");
    for (text, expected) in [
        (String::new(), "line 1, field 1: expected %%MatrixMarket, found nothing"),
        ("%%MatrixMarket matrix array real general\n".to_string(), "line 1, field 3: expected coordinate, found array"),
        (
            "%%MatrixMarket matrix coordinate complex general".to_string(),
            "line 1, field 4: expected real, integer or pattern, found complex",
        ),
        (
            "%%MatrixMarket matrix coordinate real symmetric".to_string(),
            "line 1, field 5: expected general (the other half of a symmetric file is to be written out), found \
             symmetric",
        ),
        (file(""), "line 2, field 1: expected a size for each dimension and the number of entries"),
        (file("3"), "line 2, field 1: expected a size for each dimension and the number of entries"),
        (file("3 x 1"), "line 2, field 2: expected a size, a whole number, found x"),
        (
            file("3 99999999 1"),
            "line 2, field 2: dimensions d1 to d2 have 100000002 elements; at most 16777216 of all dimensions are read",
        ),
        (
            file("16777217 1"),
            "line 2, field 1: dimension d1 has 16777217 elements; at most 16777216 of all dimensions are read",
        ),
        // 6 dimensions of 24 bits; memory for their elements would end the program.
        (
            file(&format!("{}0", "16777216 ".repeat(6))),
            "line 2, field 2: dimensions d1 to d2 have 33554432 elements; at most 16777216 of all dimensions are read",
        ),
        (file(&format!("{}1", "1 ".repeat(33))), "line 2, field 33: a cube has at most 32 dimensions, here are 33"),
        (file("3 3 1\n1"), "line 3, field 2: expected a coordinate of d2"),
        (file("3 3 1\n1 4 1"), "line 3, field 2: expected a coordinate of d2, 0 to 3, found 4"),
        (file("3 3 1\n-1 1 1"), "line 3, field 1: expected a coordinate of d1, 0 to 3, found -1"),
        (file("3 3 1\n1 1"), "line 3, field 3: expected a value"),
        (file("3 3 1\n1 1 nan"), "line 3, field 3: expected a finite number, found nan"),
        (file("3 3 1\n1 1 1e999"), "line 3, field 3: expected a finite number, found 1e999"),
        (file("3 3 1\n1 1 1 1"), "line 3, field 4: expected the end of the line, found 1"),
        (file("3 3 1\n1 1 1\n1 2 1"), "line 4, field 1: line 2 announces 1 entries, and here is one more"),
        (file("3 3 2\n%\n1 1 1\n"), "the file ends after 1 entries; line 2 announces 2"),
        (file("0 3 1\n0 1 1\n"), "line 3, field 1: expected a coordinate of d1, 0 to 0, found 0"),
        (
            file("3 2 2\n1 2 1\n0 1 1\n"),
            "line 4, field 1: line 4 has coordinate 0 in d1, and line 3 has 2 in d2, the size of it: coordinates count \
             neither from 0 nor from 1",
        ),
        (
            "%%MatrixMarket matrix coordinate integer general\n1 1\n1 1.5".to_string(),
            "line 3, field 2: expected a whole number of 64 bits, found 1.5",
        ),
        (
            "%%MatrixMarket matrix coordinate pattern general\n1 1\n1 1".to_string(),
            "line 3, field 2: expected the end of the line, found 1",
        ),
    ] {
        let error = read(text.as_bytes(), "m", None).expect_err(&text).to_string();
        assert_eq!(error, expected, "{text}");
    }
    // Keys are checked before elements are made: 32 dimensions of half a million elements each.
    let begin = std::time::Instant::now();
    let wide = read(file(&format!("{}0", "500000 ".repeat(32))).as_bytes(), "m", None).unwrap_err().to_string();
    assert!(wide.contains("608 bits") && begin.elapsed().as_millis() < 1000, "{wide}");
    let bytes: &[u8] = b"%%MatrixMarket matrix coordinate real general\n1 1\n1 \xff\n";
    assert!(read(bytes, "m", None).unwrap_err().to_string().starts_with("line 3: "));
    let overflow = format!("%%MatrixMarket matrix coordinate integer general\n1 2\n1 {0}\n1 {0}\n", i64::MAX);
    assert!(read(overflow.as_bytes(), "m", None).unwrap_err().to_string().contains("measure value adds up to"));
}
